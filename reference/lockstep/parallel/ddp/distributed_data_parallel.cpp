#include "lockstep/parallel/ddp/distributed_data_parallel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <torch/csrc/autograd/functions/utils.h>
#include <torch/nn/module.h>

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <atomic>
#include <unordered_map>
#include <unordered_set>

#include "lockstep/base/error.h"
#include "lockstep/parallel/ddp/bucket_plan.h"
#include "lockstep/parallel/ddp/comm_hooks.h"
#include "lockstep/parallel/ddp/verify_parameters.h"

namespace lockstep::parallel {
namespace {

constexpr std::size_t kBroadcastBuffer = 250 << 20;  // how much of the state is broadcast in one go

// The accumulator of a parameter lives only as long as somebody holds it, and its hooks with it.
using Accumulator = std::shared_ptr<torch::autograd::Node>;

// Notes that a parameter has its gradient of this backward.
class ReadyHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit ReadyHook(std::shared_ptr<std::atomic<bool>> ready) : ready_(std::move(ready)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    ready_->store(true, std::memory_order_relaxed);
    return outputs;
  }

 private:
  std::shared_ptr<std::atomic<bool>> ready_;
};

struct TrainedParameter {
  std::string name;
  at::Tensor tensor;
  Accumulator accumulator;
  std::shared_ptr<std::atomic<bool>> ready = std::make_shared<std::atomic<bool>>(false);
};

// A tied parameter is one, under the first of its names.
std::vector<TrainedParameter> trained_parameters(const torch::nn::Module& model) {
  std::vector<TrainedParameter> trained;
  std::unordered_set<const at::TensorImpl*> seen;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad() || !seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
    TrainedParameter parameter{.name = item.key(), .tensor = item.value()};
    parameter.accumulator = torch::autograd::impl::grad_accumulator(parameter.tensor);
    parameter.accumulator->add_post_hook(std::make_unique<ReadyHook>(parameter.ready));
    trained.push_back(std::move(parameter));
  }
  return trained;
}

std::vector<at::Tensor> tensors_of(const std::vector<TrainedParameter>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

std::vector<at::Tensor> buffers_of(const torch::nn::Module& model) { return model.buffers(/*recurse=*/true); }

// Rank 0's values for all. They are written past the tensors' version counters: what an earlier forward saved for its
// backward stays valid (case J5: two forwards of a model with running statistics, then one backward).
void broadcast_from_first(const comm::ProcessGroup& group, const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return;
  std::vector<at::Tensor> detached;
  for (const auto& tensor : tensors) detached.push_back(tensor.variable_data());
  group.explain_failures("broadcast of the model from rank 0",
                         [&] { c10d::broadcast_coalesced(group.handle(), detached, kBroadcastBuffer, /*rank=*/0); });
}

std::shared_ptr<c10d::Reducer> make_reducer(const std::vector<TrainedParameter>& trained,
                                            const comm::ProcessGroup& group,
                                            const config::DistributedDataParallelKwargs& kwargs) {
  const auto parameters = tensors_of(trained);
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < trained.size(); ++i) names[i] = trained[i].name;
  const auto limits = bucket_limits(kwargs.bucket_cap_mb);
  const bool are_rebuilt = kwargs.static_graph || !kwargs.find_unused_parameters;
  return std::make_shared<c10d::Reducer>(
      parameters, first_buckets(parameters, limits, are_rebuilt), group.handle(),
      std::vector<bool>(parameters.size(), false), limits.other_bytes, kwargs.find_unused_parameters,
      kwargs.gradient_as_bucket_view, names, limits.first_bytes,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false, std::vector<std::int64_t>{});
}

}  // namespace

// A static graph's first iteration only learns which parameters are used, and how often; it reduces at its end.
enum class StaticGraph { none, unknown, being_learnt, known };

struct DistributedDataParallel::Parts {
  std::vector<TrainedParameter> trained;
  std::shared_ptr<c10d::Reducer> reducer;
  // Only because a reducer that searches for unused parameters writes to its logger, unasked whether it has one, when
  // the graph changes.
  std::shared_ptr<c10d::Logger> logger;
  std::vector<const void*> labelled;
  StaticGraph graph = StaticGraph::none;
};

DistributedDataParallel::DistributedDataParallel(std::shared_ptr<torch::nn::Module> model, comm::ProcessGroup group,
                                                 const config::DistributedDataParallelKwargs& kwargs)
    : model_(std::move(model)),
      group_(std::move(group)),
      kwargs_(kwargs),
      hooks_(std::make_unique<CommHooks>(group_, kwargs)),
      parts_(std::make_unique<Parts>()) {
  if (kwargs_.dim != 0) {
    throw NotSupported({.where = "DistributedDataParallelKwargs(dim)",
                        .expected = "0, the dimension along which batches are shared out",
                        .got = fmt::format("{}", kwargs_.dim)});
  }
  parts_->trained = trained_parameters(*model_);
  verify_parameters(*model_, group_);
  if (parts_->trained.empty()) {
    throw RuntimeError({.where = "DistributedDataParallel",
                        .expected = "a model with parameters that require a gradient",
                        .got = "none in " + model_->name(),
                        .fix = "There is nothing to synchronise: use the model without preparing it."});
  }
  auto state = model_->parameters();
  const auto buffers = buffers_of(*model_);
  state.insert(state.end(), buffers.begin(), buffers.end());
  broadcast_from_first(group_, state);

  if (kwargs_.static_graph) parts_->graph = StaticGraph::unknown;
  start_reducer();
}

DistributedDataParallel::~DistributedDataParallel() {
  try {
    parts_->reducer->remove_autograd_hooks();  // the model may go on without us
    for (const auto* data : parts_->labelled) group_.unlabel(data);
  } catch (const std::exception&) {
  }
}

void DistributedDataParallel::broadcast_buffers() { broadcast_from_first(group_, buffers_of(*model_)); }

void DistributedDataParallel::before_forward() {
  const bool will_reduce = at::GradMode::is_enabled() && synchronises_;
  if (will_reduce) {
    parts_->reducer->prepare_for_forward();
    bool rebuilt = false;
    group_.explain_failures("rebuilding buckets", [&] { rebuilt = parts_->reducer->rebuild_buckets(); });
    if (rebuilt) label_buckets();
  }
  if (will_reduce && kwargs_.broadcast_buffers && model_->is_training()) broadcast_buffers();
}

void DistributedDataParallel::start_reducer() {
  parts_->logger.reset();  // both before the next one takes its place in the hooks
  parts_->reducer.reset();
  parts_->reducer = make_reducer(parts_->trained, group_, kwargs_);
  parts_->logger = std::make_shared<c10d::Logger>(parts_->reducer);
  parts_->reducer->set_logger(parts_->logger);
  if (kwargs_.static_graph) parts_->reducer->set_static_graph();
  if (auto hook = hooks_->make()) parts_->reducer->register_comm_hook(std::move(hook));
  label_buckets();
}

// A reducer learns a static graph from its first backward on, and counts what comes under no_sync before the first
// reduction too; it would then wait for parameters to be used that often ever after. Learning therefore begins with a
// fresh one.
void DistributedDataParallel::begin_learning() {
  start_reducer();
  parts_->graph = StaticGraph::being_learnt;
}

void DistributedDataParallel::end_learning() {
  group_.explain_failures("backward", [&] { parts_->reducer->delay_all_reduce(); });
  parts_->graph = StaticGraph::known;
}

void DistributedDataParallel::after_forward(const std::vector<at::Tensor>& outputs) {
  if (!at::GradMode::is_enabled() || !synchronises_) return;
  if (parts_->graph == StaticGraph::unknown) begin_learning();
  for (const auto& parameter : parts_->trained) parameter.ready->store(false, std::memory_order_relaxed);
  const bool searches = kwargs_.find_unused_parameters && !kwargs_.static_graph;
  parts_->reducer->prepare_for_backward(searches ? outputs : std::vector<at::Tensor>{});
  expects_backward_ = true;
}

std::vector<std::string> DistributedDataParallel::names_without_gradient() const {
  std::vector<std::string> names;
  for (const auto& parameter : parts_->trained) {
    if (!parameter.ready->load(std::memory_order_relaxed)) names.push_back(parameter.name);
  }
  return names;
}

void DistributedDataParallel::after_backward() {
  if (!expects_backward_ || !synchronises_) return;
  const auto missing = names_without_gradient();
  if (missing.size() == parts_->trained.size()) return;  // the loss was another model's
  expects_backward_ = false;
  if (parts_->graph == StaticGraph::being_learnt) return end_learning();
  if (missing.empty() || kwargs_.find_unused_parameters || kwargs_.static_graph) return;
  throw RuntimeError(
      {.where = fmt::format("backward of {} on rank {}", model_->name(), group_.rank()),
       .expected = "every parameter to take part in the loss",
       .got = fmt::format("no gradient for {}", fmt::join(missing, ", ")),
       .fix = "The gradients of this step are not averaged; do not step. Use all of forward's outputs in the "
              "loss, or set find_unused_parameters=true."});
}

std::vector<std::vector<std::string>> DistributedDataParallel::buckets() const {
  std::unordered_map<const at::TensorImpl*, std::string> names;
  for (const auto& parameter : parts_->trained) names[parameter.tensor.unsafeGetTensorImpl()] = parameter.name;
  std::vector<std::vector<std::string>> buckets;
  for (const auto& bucket : parts_->reducer->get_grad_buckets(/*return_zero_tensors=*/false)) {
    auto& list = buckets.emplace_back();
    for (const auto& tensor : bucket.getParameters()) list.push_back(names.at(tensor.unsafeGetTensorImpl()));
  }
  return buckets;
}

void DistributedDataParallel::label_buckets() {
  for (const auto* data : std::exchange(parts_->labelled, {})) group_.unlabel(data);
  const auto names = buckets();
  auto buffers = parts_->reducer->get_grad_buckets(/*return_zero_tensors=*/false);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto& buffer = buffers[i].getBufferRef();
    group_.label(buffer, names[i], group_.size());
    parts_->labelled.push_back(buffer.const_data_ptr());
  }
}

}  // namespace lockstep::parallel
