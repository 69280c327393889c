#include "lockstep/accelerator/accelerator.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "lockstep/accelerator/resolve_options.h"
#include "lockstep/base/error.h"
#include "lockstep/base/logging.h"
#include "lockstep/data/prepare_data_loader.h"
#include "lockstep/data/skip_first_batches.h"
#include "lockstep/optim/clipping.h"
#include "lockstep/parallel/strategy.h"
#include "lockstep/random/synchronize.h"
#include "lockstep/value/tensor_ops.h"
#include "lockstep/value/traverse.h"

namespace lockstep {

struct Accelerator::Registered {
  std::unique_ptr<parallel::Strategy> strategy;
  std::vector<random::RngType> rng_types;
  int num_loaders = 0;
  std::vector<std::weak_ptr<data::PreparedDataLoader>> loaders;
  std::vector<std::weak_ptr<torch::nn::Module>> models;
  std::vector<std::shared_ptr<modules::ModelEngine>> engines;
  std::vector<std::shared_ptr<const optim::PreparedOptimizer>> optimizers;
};

Accelerator::Accelerator(const AcceleratorOptions& options)
    : options_(options),
      state_(state_options_of(options)),
      data_(data_configuration_of(options)),
      precision_(precision_of(options, state_.device().type())),
      profile_(profile_kwargs_of(options)),
      project_(project_configuration_of(options)),
      registered_(std::make_unique<Registered>()) {
  // All that may be refused comes before what other Accelerators of the rank would notice.
  const auto plugin = accumulation_of(options, state_.rank().environment());
  const auto ddp_kwargs = ddp_kwargs_of(options);
  if (precision_.uses_scaler()) {
    const auto kwargs = config::handler_or_default<config::GradScalerKwargs>(options.kwargs_handlers);
    scaler_ = std::make_shared<precision::GradScaler>(kwargs, device());
  }
  registered_->rng_types = rng_types_of(options);
  auto& gradients = gradient_state();
  gradients.num_steps = plugin.num_steps;
  gradients.adjust_scheduler = plugin.adjust_scheduler;
  gradients.sync_with_dataloader = plugin.sync_with_dataloader;
  gradients.sync_each_batch = plugin.sync_each_batch;
  gradients.accumulation_rule = plugin.accumulation_rule;
  registered_->strategy =
      parallel::make_strategy({.group = world_group(), .ddp = ddp_kwargs, .on_accelerator = !device().is_cpu()});
}

Accelerator::~Accelerator() = default;

void Accelerator::set_gradient_accumulation_steps(int steps) { gradient_state().num_steps = checked_num_steps(steps); }

void Accelerator::forget_prepared() {
  registered_->models.clear();
  registered_->engines.clear();
  registered_->optimizers.clear();
  if (scaler_) scaler_->forget_optimizers();
  registered_->loaders.clear();
  window_ = {};
}

namespace {

template <typename Object>
void require_object(const std::shared_ptr<Object>& object, const char* where, const char* what) {
  if (object) return;
  throw InvalidArgument({.where = where,
                         .expected = what,
                         .got = "a null pointer",
                         .fix = "Make it first; what was moved, or dropped by free_memory, is none."});
}

}  // namespace

void Accelerator::require_placement_of(std::size_t num_objects, const DevicePlacement& placement) {
  if (placement.per_object.size() == num_objects) return;
  throw InvalidArgument({.where = "prepare(device_placement)",
                         .expected = fmt::format("{} values, one for each object", num_objects),
                         .got = fmt::format("{}", placement.per_object.size()),
                         .fix = "Give one value for each object, in their order, or leave it out."});
}

std::shared_ptr<modules::ModelEngine> Accelerator::prepare_model(const std::shared_ptr<torch::nn::Module>& model,
                                                                 bool on_device) {
  require_object(model, "prepare", "a model");
  std::erase_if(registered_->models, [](const auto& known) { return known.expired(); });
  if (std::ranges::any_of(registered_->models, [&model](const auto& known) { return known.lock() == model; })) {
    throw InvalidArgument({.where = "prepare",
                           .expected = "each model once",
                           .got = "model " + model->name() + " a second time",
                           .fix = "Keep what the first call returned: preparing that again is harmless."});
  }
  if (on_device && !device().is_cpu()) model->to(device());
  auto engine = registered_->strategy->prepare(model);
  registered_->models.push_back(model);
  if (engine) registered_->engines.push_back(engine);
  return engine;
}

std::shared_ptr<optim::PreparedOptimizer> Accelerator::prepare_optimizer(
    std::shared_ptr<torch::optim::Optimizer> optimizer) {
  require_object(optimizer, "prepare", "an optimizer");
  auto prepared = std::make_shared<optim::PreparedOptimizer>(std::move(optimizer), gradient_state(),
                                                             state_.rank().account(), scaler_);
  if (scaler_) scaler_->share_with(*prepared->optimizer());
  registered_->optimizers.push_back(prepared);
  return prepared;
}

std::shared_ptr<optim::PreparedScheduler> Accelerator::prepare_scheduler(std::shared_ptr<optim::Scheduler> scheduler) {
  require_object(scheduler, "prepare", "a scheduler");
  auto optimizers = optim::associated_optimizers(*scheduler, registered_->optimizers);
  return std::make_shared<optim::PreparedScheduler>(
      std::move(scheduler), std::move(optimizers), gradient_state(), state_.rank().account(),
      optim::PreparedSchedulerOptions{.step_with_optimizer = options_.step_scheduler_with_optimizer,
                                      .split_batches = data_.split_batches,
                                      .world_size = num_processes()});
}

std::shared_ptr<data::PreparedDataLoader> Accelerator::prepare_data_loader(data::DataLoader loader,
                                                                           const PrepareDataLoaderOptions& options) {
  const auto rank = state_.rank().shared_from_this();
  const auto& group = world_group();
  const auto types = registered_->rng_types;
  data::PrepareOptions prepare{.split_batches = data_.split_batches,
                               .dispatch_batches = data_.dispatch_batches,
                               .even_batches = data_.even_batches,
                               .use_seedable_sampler = data_.use_seedable_sampler,
                               .data_seed = data_.data_seed,
                               .use_stateful_dataloader = data_.use_stateful_dataloader,
                               .non_blocking = data_.non_blocking,
                               .already_sharded = options.already_sharded,
                               .slice = options.slice_fn_for_dispatch,
                               .group = group};
  if (options.device_placement.value_or(options_.device_placement)) prepare.device = device();
  prepare.start_thread = [rank](std::function<void()> run) { return rank->start_thread(std::move(run)); };
  prepare.hooks.begin_pass = [types, group, rank] {
    for (const auto type : types) {
      if (type != random::RngType::generator) random::synchronize(type, std::nullopt, group, rank->generator());
    }
  };
  // Also without "generator" among the types (RNG-009, accepted outcome): ranks that shuffle apart would miss samples.
  prepare.hooks.synchronize_generator = [group](at::Generator& generator) {
    random::synchronize(random::RngType::generator, generator, group);
  };
  const auto name = fmt::format("loader{}", registered_->num_loaders++);
  prepare.hooks.on_batch = [rank, name](const data::BatchInfo& batch) {
    auto& account = *rank->account();
    if (batch.is_first) account.emit([&] { return accounting::EpochBegin{.loader = name, .epoch = batch.epoch}; });
    account.emit([&] {
      return accounting::Batch{.loader = name, .indices = batch.items.indices, .padding = batch.items.num_padding};
    });
  };
  prepare.synchronize_seed = [group](std::int64_t seed) {
    auto shared = at::full({1}, seed, at::kLong);
    return comm::broadcast(shared, group).tensor().item<std::int64_t>();
  };
  auto prepared = data::prepare_data_loader(std::move(loader), {.rank = process_index(), .size = num_processes()},
                                            gradient_state(), prepare);
  registered_->loaders.push_back(prepared);
  return prepared;
}

data::DataLoader Accelerator::skip_first_batches(const data::DataLoader& loader, std::int64_t num_batches,
                                                 bool every_epoch) const {
  return data::skip_first_batches(loader, num_batches, every_epoch);
}

std::shared_ptr<data::PreparedDataLoader> Accelerator::skip_first_batches(
    const std::shared_ptr<data::PreparedDataLoader>& loader, std::int64_t num_batches, bool every_epoch) const {
  require_object(loader, "skip_first_batches", "a prepared loader");
  return data::skip_first_batches(*loader, num_batches, every_epoch);
}

UnevenInputs Accelerator::join_uneven_inputs(const JoinOptions& options) const {
  const auto type = distributed_type();
  const bool can_join =
      type == state::DistributedType::multi_gpu || (options.on_cpu && type == state::DistributedType::multi_cpu);
  if (!can_join) {
    if (use_distributed()) {
      log::warning(
          "join_uneven_inputs has an effect on accelerators only, and none here (on the CPU with on_cpu=true)");
    }
    return {};
  }
  std::unique_ptr<parallel::Join> join;
  if (!options.even_batches.value_or(data_.even_batches)) {
    const auto divisor = options.divide_by_initial_world_size ? parallel::JoinDivisor::world_size
                                                              : parallel::JoinDivisor::ranks_with_inputs;
    join = registered_->strategy->join(registered_->engines, divisor);
  }
  // Ranks that had run out did not see the last overflows; under another scale their gradients would weigh more.
  const auto take_scale_from = [scaler = scaler_, group = world_group()](int last_rank) {
    if (!scaler) return;
    std::vector<Value> state{scaler->state_dict()};
    scaler->load_state_dict(comm::broadcast_object_list(state, group, last_rank).front());
  };
  return {even_batches_scope(options.even_batches), std::move(join), take_scale_from};
}

data::EvenBatchesScope Accelerator::even_batches_scope(std::optional<bool> even_batches) const {
  if (!even_batches) return {};
  std::vector<std::shared_ptr<data::PreparedDataLoader>> loaders;
  for (const auto& known : registered_->loaders) {
    if (auto loader = known.lock()) loaders.push_back(std::move(loader));
  }
  data::EvenBatchesScope scope(loaders, *even_batches);
  if (scope.num_untouched() > 0) {
    log::warning("join_uneven_inputs: even_batches means nothing to dispatchers and iterable datasets");
  }
  return scope;
}

void Accelerator::begin_micro_batch() {
  const double factor = window_.begin_micro_batch(gradient_state());
  if (factor != 1.0) scale_gathered_gradients(factor);
}

void Accelerator::scale_gathered_gradients(double factor) {
  const at::NoGradGuard no_grad;
  std::unordered_set<const at::TensorImpl*> scaled;  // a model's parameters are its optimizer's as well
  const auto scale = [&](const at::Tensor& parameter) {
    if (parameter.grad().defined() && scaled.insert(parameter.unsafeGetTensorImpl()).second) {
      parameter.grad().mul_(factor);
    }
  };
  for (const auto& known : registered_->models) {
    if (const auto model = known.lock()) std::ranges::for_each(model->parameters(), scale);
  }
  for (const auto& optimizer : registered_->optimizers) {
    for (const auto& group : optimizer->param_groups()) std::ranges::for_each(group.params(), scale);
  }
}

void Accelerator::require_no_search() const {
  const auto ddp = ddp_kwargs_of(options_);
  if (!ddp.find_unused_parameters || ddp.static_graph || !world_group()) return;
  throw NotSupported({.where = "trigger_sync_in_backward",
                      .expected = "find_unused_parameters=false",
                      .got = "true, which has to see the forward that the backward belongs to",
                      .fix = "Run the last forward outside no_sync."});
}

void Accelerator::backward(const at::Tensor& loss, const std::optional<at::Tensor>& gradient, bool retain_graph) {
  if (!gradient && loss.numel() != 1) {
    throw RuntimeError({.where = "backward",
                        .expected = "a scalar loss",
                        .got = fmt::format("a loss of shape [{}]", fmt::join(loss.sizes(), ", ")),
                        .fix = "Take its mean() or sum(), or pass the gradient with respect to it."});
  }
  if (!loss.requires_grad()) {
    throw RuntimeError(
        {.where = "backward",
         .expected = "a loss that depends on a parameter which is trained",
         .got = "one that requires no gradient",
         .fix = "Give the model parameters, unfreeze some, and do not detach its outputs or compute the loss "
                "under NoGradGuard."});
  }
  const accounting::PhaseScope phase(account(), accounting::Phase::backward);
  const bool synchronising =
      std::ranges::any_of(registered_->engines, [](const auto& engine) { return engine->synchronises_gradients(); });
  account().emit([&] { return accounting::Backward{.edge = accounting::Edge::begin, .synchronising = synchronising}; });
  const auto divisor = window_.divisor(gradient_state());
  const auto share = divisor == 1 ? loss : loss / divisor;
  const auto objective = scaler_ ? scaler_->scale(share) : share;
  const auto outside_autocast = autocast(config::AutocastKwargs{.enabled = false});
  const auto run = [&] { objective.backward(gradient.value_or(at::Tensor()), retain_graph); };
  world_group() ? world_group().explain_failures("backward", run) : run();
  for (const auto& engine : registered_->engines) engine->after_backward();
  account().emit([&] { return accounting::Backward{.edge = accounting::Edge::end, .synchronising = synchronising}; });
  account().begin_micro_step();
}

double Accelerator::clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type,
                                    bool error_if_nonfinite) {
  optim::clip_grad_norm_({}, max_norm, norm_type);  // refuses limits that are none before anything is unscaled
  unscale_owners_of(parameters, "clip_grad_norm_");
  const double norm = optim::clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite);
  account().emit([&] { return accounting::Clipped{.by = "norm", .limit = max_norm, .norm = norm}; });
  return norm;
}

void Accelerator::clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value) {
  optim::clip_grad_value_({}, clip_value);  // likewise
  unscale_owners_of(parameters, "clip_grad_value_");
  optim::clip_grad_value_(parameters, clip_value);
  account().emit([&] { return accounting::Clipped{.by = "value", .limit = clip_value}; });
}

// What is unscaled in the midst of a window, the next backward adds scaled gradients to.
void Accelerator::require_whole_gradients(const char* where) const {
  if (sync_gradients() || !scaler_->is_enabled()) return;
  throw RuntimeError({.where = where,
                      .expected = "the last micro-batch of an accumulation window, under a gradient scaler",
                      .got = "one in which sync_gradients() is false: more gradients come, which carry the scale",
                      .fix = "Clip and unscale where sync_gradients() is true."});
}

void Accelerator::unscale_owners_of(const std::vector<at::Tensor>& parameters, const char* where) {
  if (!scaler_) return;
  std::unordered_set<const at::TensorImpl*> clipped;
  for (const auto& parameter : parameters) clipped.insert(parameter.unsafeGetTensorImpl());
  const auto is_clipped = [&clipped](const at::Tensor& tensor) {
    return clipped.contains(tensor.unsafeGetTensorImpl());
  };
  for (const auto& optimizer : registered_->optimizers) {
    const bool owns = std::ranges::any_of(
        optimizer->param_groups(), [&](const auto& group) { return std::ranges::any_of(group.params(), is_clipped); });
    if (!owns) continue;
    require_whole_gradients(where);
    scaler_->unscale_(*optimizer->optimizer());
  }
}

void Accelerator::unscale_gradients() {
  if (!scaler_) return;
  require_whole_gradients("unscale_gradients");
  for (const auto& optimizer : registered_->optimizers) scaler_->unscale_(*optimizer->optimizer());
}

void Accelerator::unscale_gradients(const std::vector<std::shared_ptr<optim::PreparedOptimizer>>& optimizers) {
  for (const auto& optimizer : optimizers) require_object(optimizer, "unscale_gradients", "a prepared optimizer");
  if (!scaler_) return;
  require_whole_gradients("unscale_gradients");
  for (const auto& optimizer : optimizers) scaler_->unscale_(*optimizer->optimizer());
}

bool Accelerator::optimizer_step_was_skipped() const {
  return std::ranges::any_of(registered_->optimizers,
                             [](const auto& optimizer) { return optimizer->step_was_skipped(); });
}

bool Accelerator::check_trigger() {
  const auto marks = comm::reduce(at::full({1}, is_triggered_ ? 1 : 0, at::kLong), world_group(), comm::Reduction::max);
  is_triggered_ = false;
  return marks.tensor().item<std::int64_t>() != 0;
}

Value Accelerator::gather_for_metrics(const Value& value, bool use_gather_object) const {
  // An empty list is no list of tensors: a rank whose list of objects is empty goes with those whose is not.
  const bool is_empty_list = value.is_sequence() && value.size() == 0;
  const bool as_objects = use_gather_object || value::has_non_tensor_leaf(value) || is_empty_list;
  const auto all = as_objects ? gather_object(value) : gather(value);
  const auto real = gradient_state().remainder();
  if (!gradient_state().end_of_dataloader() || real <= 0) return all;
  try {
    if (!as_objects) return value::slice(all, 0, real);
    auto items = all.items();
    if (static_cast<std::int64_t>(items.size()) > real) items.resize(static_cast<std::size_t>(real));
    return Value::list(std::move(items));
  } catch (const std::exception&) {
    return all;  // what cannot be cut, a 0-dim tensor of a single process for example, is returned whole (OPS-035)
  }
}

}  // namespace lockstep
