#include "lockstep/parallel/ddp/distributed_data_parallel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <torch/nn/module.h>

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/logging.h"
#include "lockstep/parallel/ddp/bucket_plan.h"
#include "lockstep/parallel/ddp/comm_hooks.h"
#include "lockstep/parallel/ddp/trained_parameters.h"
#include "lockstep/parallel/ddp/valid_kwargs.h"
#include "lockstep/parallel/ddp/verify_parameters.h"

namespace lockstep::parallel {
namespace {

constexpr std::size_t kBroadcastBuffer = 250 << 20;  // how much of the state is broadcast in one go

std::vector<at::Tensor> buffers_of(const torch::nn::Module& model) { return model.buffers(/*recurse=*/true); }

// One rank's values for all. They are written past the tensors' version counters: what an earlier forward saved for its
// backward stays valid (case J5: two forwards of a model with running statistics, then one backward).
void broadcast_from(int root, const comm::ProcessGroup& group, const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return;
  std::vector<at::Tensor> detached;
  for (const auto& tensor : tensors) detached.push_back(tensor.variable_data());
  group.explain_failures(fmt::format("broadcast of the model from rank {}", root),
                         [&] { c10d::broadcast_coalesced(group.handle(), detached, kBroadcastBuffer, root); });
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
      divisor_(group_.size()),
      parts_(std::make_unique<Parts>()) {
  require_valid(kwargs_);
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
  broadcast_from(/*root=*/0, group_, state);

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

void DistributedDataParallel::broadcast_buffers(int root) { broadcast_from(root, group_, buffers_of(*model_)); }

void DistributedDataParallel::rebuild_buckets() {
  bool rebuilt = false;
  group_.explain_failures("rebuilding buckets", [&] { rebuilt = parts_->reducer->rebuild_buckets(); });
  if (rebuilt) label_buckets();
}

void DistributedDataParallel::before_forward() {
  if (!at::GradMode::is_enabled() || !synchronises_gradients()) return;
  const bool takes_buffers = kwargs_.broadcast_buffers && model_->is_training();
  const int root = join_ == nullptr ? 0 : agree({.has_forward = true, .takes_buffers = takes_buffers});
  parts_->reducer->prepare_for_forward();
  rebuild_buckets();
  if (takes_buffers) broadcast_buffers(root);
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
  has_seen_forward_ |= at::GradMode::is_enabled();
  if (!at::GradMode::is_enabled() || !synchronises_gradients()) return;
  if (join_ != nullptr && !join_->is_pending(*this)) agree({.has_forward = false});
  if (parts_->graph == StaticGraph::unknown) begin_learning();
  rebuild_buckets();  // of a forward that did not do it before, for it ran under no_sync (ACC-010)
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

// The module's own forward() is within reach and communicates nothing.
void DistributedDataParallel::warn_of_local_gradients() {
  const auto has_gradient = [](const TrainedParameter& parameter) { return parameter.ready->load(); };
  if (has_warned_ || std::ranges::none_of(parts_->trained, has_gradient)) return;
  has_warned_ = true;
  log::warning(
      fmt::format("{} has gradients of a backward, but no forward of the prepared model was called: they are not "
                  "averaged. Call the prepared model itself, model(x), not model->forward(x).",
                  model_->name()));
}

void DistributedDataParallel::after_backward() {
  if (!has_seen_forward_) warn_of_local_gradients();
  if (!expects_backward_ || !synchronises_gradients()) return;
  const auto missing = names_without_gradient();
  if (missing.size() == parts_->trained.size()) return;  // the loss was another model's
  expects_backward_ = false;
  if (join_ != nullptr) join_->complete(*this);
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
    group_.label(buffer, names[i], divisor_);
    parts_->labelled.push_back(buffer.const_data_ptr());
  }
}

// -- Joining ----------------------------------------------------------------------------------------------------------

void DistributedDataParallel::require_joinable(JoinDivisor divisor) const {
  if (join_ != nullptr) {
    throw InvalidArgument({.where = "join_uneven_inputs",
                           .expected = "one scope at a time",
                           .got = fmt::format("a second one for {}", model_->name()),
                           .fix = "End the first scope before the second begins."});
  }
  if (kwargs_.static_graph) {
    throw NotSupported({.where = "join_uneven_inputs",
                        .expected = "static_graph=false",
                        .got = "true: ranks that have run out of inputs cannot shadow what is learnt from a backward",
                        .fix = "Leave static_graph off, or even_batches on."});
  }
  const bool has_hook = kwargs_.comm_hook != config::DdpCommunicationHookType::no;
  if (has_hook && divisor == JoinDivisor::ranks_with_inputs) {
    throw NotSupported({.where = "join_uneven_inputs(divide_by_initial_world_size=false)",
                        .expected = "no communication hook",
                        .got = "one, and hooks divide by the world size",
                        .fix = "Leave divide_by_initial_world_size on."});
  }
}

void DistributedDataParallel::end_join() {
  join_ = nullptr;
  if (divisor_ != group_.size()) divide_by(group_.size());
}

// Returns the rank whose buffers count.
int DistributedDataParallel::agree(const Reduction& reduction) {
  const auto& with_inputs = join_->agree(*this, reduction);
  if (join_->divisor() == JoinDivisor::ranks_with_inputs) divide_by(static_cast<int>(with_inputs.size()));
  return with_inputs.front();
}

// The reducer asks a collective of the forward for the number of ranks; here its result is known already.
void DistributedDataParallel::divide_by(int divisor) {
  auto known = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  known->markCompleted(std::vector<at::Tensor>{at::full({1}, divisor, at::kInt)});
  parts_->reducer->set_forward_pass_work_handle(c10d::Work::create_from_future(known), /*useStaticWorldSize=*/false);
  if (std::exchange(divisor_, divisor) != divisor) label_buckets();
}

void DistributedDataParallel::shadow(const Reduction& reduction, int root) {
  rebuild_buckets();
  if (reduction.takes_buffers) broadcast_buffers(root);
  group_.explain_failures("reduction of the ranks that still have inputs", [this] { reduce_zeros(); });
}

// The collectives that a backward posts, in its order: each bucket, then which parameters are used.
void DistributedDataParallel::reduce_zeros() {
  std::vector<c10::intrusive_ptr<c10::ivalue::Future>> posted;
  auto zeros = parts_->reducer->get_grad_buckets(/*return_zero_tensors=*/true);
  for (auto& bucket : zeros) posted.push_back(parts_->reducer->run_comm_hook(bucket));
  if (kwargs_.find_unused_parameters) {
    std::vector<at::Tensor> none{at::zeros_like(parts_->reducer->get_local_used_map_on_device())};
    group_.handle()->allreduce(none)->wait();
  }
  for (const auto& future : posted) future->waitAndThrow();
  parts_->reducer->push_rebuilt_params_for_all_indices();
}

void DistributedDataParallel::take_model_from(int root) {
  auto state = model_->parameters();
  if (kwargs_.broadcast_buffers) {
    const auto buffers = buffers_of(*model_);
    state.insert(state.end(), buffers.begin(), buffers.end());
  }
  broadcast_from(root, group_, state);
}

at::Device DistributedDataParallel::device() const { return parts_->trained.front().tensor.device(); }

}  // namespace lockstep::parallel
