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

}  // namespace

accounting::Phase current_phase() {
  const bool is_in_backward = torch::autograd::get_current_graph_task_id() != -1;
  return is_in_backward ? accounting::Phase::backward : accounting::Phase::other;
}
void set_step(std::int64_t step) { num_steps = step; }
std::int64_t step() { return num_steps; }

}  // namespace lockstep::python

namespace lockstep::sim {

Caller describe_caller(const std::vector<at::Tensor>& tensors, Frames& frames) {
  const auto phase = python::current_phase();
  return {.context = {.step = python::step(),
                      .phase = static_cast<std::uint8_t>(phase),
                      .label = python::label_of(tensors, phase == accounting::Phase::backward),
                      .site = site_of_wait(frames)}};
}

CallSite site_of_wait(Frames&) {
  const auto* site = python::site_here();
  return site == nullptr ? CallSite{} : CallSite{.text = site->text, .hash = site->hash};
}

}  // namespace lockstep::sim
