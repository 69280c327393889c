// The Python adapter's answers to what the checked operations ask (sim/lockstep/sim/backend/caller.h).
#include "python_caller.h"

#include <torch/csrc/autograd/graph_task.h>

#include <atomic>

#include "call_labels.h"
#include "lockstep/sim/backend/caller.h"
#include "python_sites.h"

namespace lockstep::python {
namespace {

std::atomic<std::int64_t> num_steps{0};

constexpr std::uint8_t kBackward = 2;  // phases as in comm/backend_plugin.h
constexpr std::uint8_t kOther = 6;

}  // namespace

bool is_in_backward() { return torch::autograd::get_current_graph_task_id() != -1; }
void set_step(std::int64_t step) { num_steps = step; }
std::int64_t step() { return num_steps; }

}  // namespace lockstep::python

namespace lockstep::sim {

Caller describe_caller(const std::vector<at::Tensor>& tensors, Frames& frames) {
  const bool in_backward = python::is_in_backward();
  return {.context = {.step = python::step(),
                      .phase = in_backward ? python::kBackward : python::kOther,
                      .label = python::label_of(tensors, in_backward),
                      .site = site_of_wait(frames)}};
}

CallSite site_of_wait(Frames&) {
  const auto* site = python::site_here();
  return site == nullptr ? CallSite{} : CallSite{.text = site->text, .hash = site->hash};
}

}  // namespace lockstep::sim
