#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/accelerator/accelerator_options.h"
#include "lockstep/accelerator/accumulation.h"
#include "lockstep/accelerator/accumulation_window.h"
#include "lockstep/accelerator/preparable.h"
#include "lockstep/accelerator/profiler.h"
#include "lockstep/accelerator/uneven_inputs.h"
#include "lockstep/comm/operations.h"
#include "lockstep/data/prepared_data_loader.h"
#include "lockstep/modules/prepared.h"
#include "lockstep/optim/prepared_optimizer.h"
#include "lockstep/optim/prepared_scheduler.h"
#include "lockstep/precision/grad_scaler.h"
#include "lockstep/precision/policy.h"
#include "lockstep/state/accelerator_state.h"
#include "lockstep/state/process_control.h"

namespace lockstep {

/// Asks unwrap_model for a model that still runs in mixed precision and returns float32.
struct KeepFp32Wrapper {};
inline constexpr KeepFp32Wrapper keep_fp32_wrapper;

/// Makes a training loop for one process run on several: prepares model, optimizer, data and scheduler, and replaces
/// the few calls that mean something else there.
///
///     Accelerator accelerator;
///     auto [model, optimizer, loader] = accelerator.prepare(Net(), optimizer_of_net, data_loader);
///     for (const Value& batch : *loader) {
///       const auto window = accelerator.accumulate(model);
///       accelerator.backward(loss(model(batch[0].tensor()), batch[1].tensor()));
///       optimizer->step();
///       optimizer->zero_grad();
///     }
///
/// It composes and holds no algorithm of its own: who is where is state/, how gradients are synchronised parallel/,
/// what a rank sees of the data data/. Accelerators of one rank share their state (STATE-101, 124).
///
/// @source Accelerate, Accelerator
class LOCKSTEP_API Accelerator {
 public:
  /// @throws InvalidArgument  for options that contradict each other or the rank's state
  /// @throws Missing          for an fp8 backend that is not installed
  /// @throws NotSupported     for a compiler, a tracker or an engine that is not there yet
  explicit Accelerator(const AcceleratorOptions& options = {});
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  // -- State ---------------------------------------------------------------------------------------------------------
  [[nodiscard]] const state::AcceleratorState& state() const noexcept { return state_; }
  [[nodiscard]] state::GradientState& gradient_state() const noexcept { return state_.rank().gradient_state(); }
  [[nodiscard]] accounting::Account& account() const noexcept { return *state_.rank().account(); }
  [[nodiscard]] int num_processes() const { return state_.num_processes(); }
  [[nodiscard]] int process_index() const { return state_.process_index(); }
  [[nodiscard]] int local_process_index() const { return state_.local_process_index(); }
  [[nodiscard]] bool is_main_process() const { return state_.is_main_process(); }
  [[nodiscard]] bool is_local_main_process() const { return state_.is_local_main_process(); }
  [[nodiscard]] bool is_last_process() const { return state_.is_last_process(); }
  [[nodiscard]] bool use_distributed() const { return state_.use_distributed(); }
  [[nodiscard]] state::DistributedType distributed_type() const { return state_.distributed_type(); }
  [[nodiscard]] state::MixedPrecision mixed_precision() const { return state_.mixed_precision(); }
  [[nodiscard]] at::Device device() const { return state_.device(); }
  [[nodiscard]] const comm::ProcessGroup& world_group() const { return state_.world_group(); }
  [[nodiscard]] bool split_batches() const noexcept { return data_.split_batches; }
  [[nodiscard]] bool even_batches() const noexcept { return data_.even_batches; }
  /// To read and to change.
  [[nodiscard]] config::ProjectConfiguration& project_configuration() noexcept { return project_; }
  [[nodiscard]] const std::optional<std::string>& project_dir() const noexcept { return project_.project_dir; }
  [[nodiscard]] std::optional<std::string> logging_dir() const { return project_.resolved_logging_dir(); }
  [[nodiscard]] std::int64_t save_iteration() const noexcept { return project_.iteration; }

  [[nodiscard]] bool sync_gradients() const { return gradient_state().sync_gradients; }
  void set_sync_gradients(bool on) { gradient_state().sync_gradients = on; }
  [[nodiscard]] int gradient_accumulation_steps() const { return gradient_state().num_steps; }
  void set_gradient_accumulation_steps(int steps);
  /// Micro-batches in the current accumulation window, 0 after the one that ended a pass (ACC-001).
  [[nodiscard]] std::int64_t accumulation_step() const noexcept { return window_.count(); }

  // -- Preparing -----------------------------------------------------------------------------------------------------
  /// Prepares each argument and returns the results in their order: the object alone for one argument, a tuple for
  /// several.
  ///
  /// | given                                               | returned                              |
  /// |-----------------------------------------------------|---------------------------------------|
  /// | a module holder, or shared_ptr of a module          | modules::Prepared of it               |
  /// | an optimizer (moved), or shared_ptr of one          | shared_ptr<optim::PreparedOptimizer>  |
  /// | data::DataLoader                                    | shared_ptr<data::PreparedDataLoader>  |
  /// | shared_ptr of an optim::Scheduler                   | shared_ptr<optim::PreparedScheduler>  |
  /// | anything else, and what is prepared already         | itself                                |
  ///
  /// A scheduler may stand before its optimizer. All ranks prepare the same objects in the same order.
  /// @throws InvalidArgument  if a model is prepared twice by way of the model itself
  /// @clause STATE-145, 146, 148
  template <typename... Objects>
  auto prepare(Objects&&... objects) {
    DevicePlacement alike{std::vector<bool>(sizeof...(Objects), options_.device_placement)};
    return prepare(std::move(alike), std::forward<Objects>(objects)...);
  }
  /// The same, with a device placement for each object.
  /// @throws InvalidArgument  unless there are as many as objects
  /// @clause STATE-147
  template <typename... Objects>
  auto prepare(DevicePlacement placement, Objects&&... objects) {
    static_assert(sizeof...(Objects) > 0, "prepare() needs something to prepare");
    require_placement_of(sizeof...(Objects), placement);
    // Braces, so that the order of evaluation is that of the arguments: models communicate here.
    auto on_device = placement.per_object.begin();
    std::tuple<decltype(prepare_first(std::forward<Objects>(objects), true))...> first{
        prepare_first(std::forward<Objects>(objects), *on_device++)...};
    // Schedulers come second: they look for their optimizer among the prepared ones.
    auto all = std::apply(
        [this](auto&&... one) {
          return std::tuple<decltype(this->prepare_second(std::move(one)))...>{this->prepare_second(std::move(one))...};
        },
        std::move(first));
    if constexpr (sizeof...(Objects) == 1) {
      return std::get<0>(std::move(all));
    } else {
      return all;
    }
  }

  /// prepare() of one loader, with options of its own.
  std::shared_ptr<data::PreparedDataLoader> prepare_data_loader(data::DataLoader loader,
                                                                const PrepareDataLoaderOptions& options = {});

  /// The loader without the first `num_batches` steps of its passes, or with every_epoch=false of the coming one alone
  /// (data/skip_first_batches.h).
  /// @clause DATA-105..109
  [[nodiscard]] data::DataLoader skip_first_batches(const data::DataLoader& loader, std::int64_t num_batches,
                                                    bool every_epoch = true) const;
  [[nodiscard]] std::shared_ptr<data::PreparedDataLoader> skip_first_batches(
      const std::shared_ptr<data::PreparedDataLoader>& loader, std::int64_t num_batches, bool every_epoch = true) const;

  /// For a training loop in which ranks take unequal numbers of batches: a rank that has none left takes its part in
  /// the others' reductions with gradients of zero, at the end of the scope, until no rank has any. All ranks then have
  /// the same parameters, and the same loss scale.
  ///
  ///     {
  ///       const auto uneven = accelerator.join_uneven_inputs({.even_batches = false});
  ///       for (const Value& batch : *loader) { ... }  // 5 samples: rank 0 takes 3 steps, rank 1 takes 2
  ///     }
  ///
  /// Ranks join where even_batches (the option, else the Accelerator's) comes to false, and only on accelerators, or
  /// with `on_cpu`; elsewhere it warns and has no effect, and for a single process it is silent (ACC-045). While the
  /// result lives, the option holds for the map-style loaders prepared so far; a loader to which it means nothing is
  /// left as it is, with a warning (ACC-045, 046).
  ///
  /// One pass in a scope, and in it no call that blocks on other ranks but those of the models (parallel/ddp/join.h);
  /// what optimizers and schedulers remember of a step stays on the ranks that took it. An exception on one rank ends
  /// the scope on that rank, and the others learn of it as of any failing rank.
  /// @throws NotSupported  on all ranks alike, where ranks would join, for static_graph, and for a communication hook
  ///                       without divide_by_initial_world_size
  /// @clause ACC-044..046
  UnevenInputs join_uneven_inputs(const JoinOptions& options = {}) const;

  /// The model without what prepare() put around it: its forward runs as it stands (AMP-010).
  template <typename Net>
  [[nodiscard]] std::shared_ptr<Net> unwrap_model(const modules::Prepared<Net>& model) const {
    return model.module();
  }
  /// A model that was not prepared is itself.
  template <typename Net>
  [[nodiscard]] std::shared_ptr<Net> unwrap_model(const std::shared_ptr<Net>& model) const {
    return model;
  }

  /// The model without what synchronises its gradients, but in the mixed precision it was prepared for (AMP-010).
  template <typename Net>
  [[nodiscard]] modules::Prepared<Net> unwrap_model(const modules::Prepared<Net>& model, KeepFp32Wrapper) const {
    return model.without_engine();
  }

  /// Drops everything prepared so far, empties the shared pointers passed, and starts the accumulation count anew.
  /// @clause STATE-149
  template <typename... Objects>
  void free_memory(std::shared_ptr<Objects>&... objects) {
    (objects.reset(), ...);
    forget_prepared();
  }
  template <typename... Objects>
  void clear(std::shared_ptr<Objects>&... objects) {
    free_memory(objects...);
  }

  // -- One step ------------------------------------------------------------------------------------------------------
  /// While it lives, one micro-batch of an accumulation window: decides whether this is the one that synchronises, and
  /// keeps the models' gradients local when it is not (ACC-001..008). In the one that does, a no_sync around it holds.
  template <typename... Net>
  [[nodiscard]] Accumulation accumulate(const modules::Prepared<Net>&... models) {
    return accumulate(std::vector<modules::ModelEngine*>{models.engine().get()...});
  }
  /// The same for models whose number only the run knows, by their engines (Prepared::engine), which may be null.
  [[nodiscard]] Accumulation accumulate(const std::vector<modules::ModelEngine*>& engines) {
    begin_micro_batch();
    if (sync_gradients() || gradient_state().sync_each_batch) return Accumulation({}, /*synchronise=*/true);
    return Accumulation(engines, /*synchronise=*/false);
  }

  /// While it lives, the model's gradients stay this rank's own (ACC-009).
  template <typename Net>
  [[nodiscard]] Accumulation no_sync(const modules::Prepared<Net>& model) {
    return Accumulation({model.engine().get()}, /*synchronise=*/false);
  }

  /// While it lives, backward reduces what no_sync has gathered so far and its own gradients, although the forward ran
  /// under no_sync: for several forwards before the first backward (ACC-010).
  /// @throws NotSupported  with find_unused_parameters, which has to see the forward
  template <typename Net>
  [[nodiscard]] Accumulation trigger_sync_in_backward(const modules::Prepared<Net>& model) {
    require_no_search();
    Accumulation scope({model.engine().get()}, /*synchronise=*/true);
    if (model.engine()) model.engine()->after_forward({});
    return scope;
  }

  /// Adds the gradient of loss / gradient_accumulation_steps (ACC-005; in a shorter window its own number of
  /// micro-batches, by AccumulationRule::window_mean), times the scaler's scale under fp16 (AMP-008).
  /// Runs outside any autocast scope.
  /// @param loss      scalar, unless `gradient` is given
  /// @param gradient  d(objective)/d(loss), of the loss's shape
  /// @throws RuntimeError  for a loss that is no scalar or depends on nothing that is trained, and for parameters that
  ///                       took no part in it (DDP-005)
  void backward(const at::Tensor& loss, const std::optional<at::Tensor>& gradient = {}, bool retain_graph = false);

  // Clipping first unscales the gradients of the prepared optimizers that hold any of `parameters`; under fp16 it is
  // therefore called once before each step, only where sync_gradients() is true (ACC-042).
  /// Scales the gradients to at most `max_norm`; returns their norm before (ACC-040). Adds no communication.
  double clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2.0,
                         bool error_if_nonfinite = false);
  /// Clamps each element to [-clip_value, clip_value] (ACC-041).
  void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);
  /// Divides the gradients of all prepared optimizers, or of these, by the scaler's scale; nothing without a scaler.
  /// @throws RuntimeError  the second time before the next step, and where sync_gradients() is false
  /// @clause ACC-042
  void unscale_gradients();
  void unscale_gradients(const std::vector<std::shared_ptr<optim::PreparedOptimizer>>& optimizers);
  /// Whether the scaler made any prepared optimizer skip its last step (ACC-024).
  [[nodiscard]] bool optimizer_step_was_skipped() const;

  // -- Mixed precision -----------------------------------------------------------------------------------------------
  /// Whether prepared models run under autocast: in every mode but no (AMP-001).
  [[nodiscard]] bool native_amp() const noexcept { return precision_.native_amp(); }
  /// What scales losses under fp16; none in the other modes.
  [[nodiscard]] const std::shared_ptr<precision::GradScaler>& scaler() const noexcept { return scaler_; }
  /// While it lives, code outside the model runs in the mixed precision too. Nothing for mode no.
  /// @clause AMP-005, KW-004
  [[nodiscard]] precision::Autocast autocast() const { return precision_.autocast({}); }
  /// @param kwargs  instead of the Accelerator's AutocastKwargs
  [[nodiscard]] precision::Autocast autocast(const config::AutocastKwargs& kwargs) const {
    return precision_.autocast(kwargs);
  }

  // -- Across the ranks ----------------------------------------------------------------------------------------------
  [[nodiscard]] Value gather(const Value& value) const { return comm::gather(value, world_group()); }
  [[nodiscard]] Value gather_object(const Value& list) const { return comm::gather_object(list, world_group()); }
  /// gather, without the rows that only fill up the last batch of the active loader. A value with a leaf that is no
  /// tensor (or without any leaf) is gathered as objects, and the flat list is cut (OPS-030..036).
  [[nodiscard]] Value gather_for_metrics(const Value& value, bool use_gather_object = false) const;
  [[nodiscard]] Value reduce(const Value& value, comm::Reduction reduction = comm::Reduction::sum) const {
    return comm::reduce(value, world_group(), reduction);
  }
  Value broadcast(const Value& value, int from_process = 0) const {
    return comm::broadcast(value, world_group(), from_process);
  }
  [[nodiscard]] Value pad_across_processes(const Value& value, const comm::PadOptions& options = {}) const {
    return comm::pad_across_processes(value, world_group(), options);
  }
  [[nodiscard]] Value split_between_processes(const Value& value, bool apply_padding = false) const {
    return state_.split_between_processes(value, apply_padding);
  }

  // -- Profiling -----------------------------------------------------------------------------------------------------
  /// Records operators for as long as the result lives, as the handler among the options says.
  /// @clause KW-020
  [[nodiscard]] Profiler profile() const { return Profiler(profile_, world_group()); }
  [[nodiscard]] Profiler profile(config::ProfileKwargs handler) const {
    return Profiler(std::move(handler), world_group());
  }

  // -- Process control -----------------------------------------------------------------------------------------------
  void wait_for_everyone() const { state_.wait_for_everyone(); }
  /// Marks this rank, for `check_trigger`: a loss that is no number on one rank, say, ends the training of all.
  void set_trigger() noexcept { is_triggered_ = true; }
  /// Whether any rank was marked, on every rank, and clears the marks. Blocks until all ranks ask (ACC-043).
  [[nodiscard]] bool check_trigger();
  /// On each local main process.
  void print(std::string_view line) const { state_.print(line); }
  [[nodiscard]] state::MainProcessFirst main_process_first() const { return state::MainProcessFirst(state_); }
  [[nodiscard]] state::LocalMainProcessFirst local_main_process_first() const {
    return state::LocalMainProcessFirst(state_);
  }
  // Functions that run on some ranks and elsewhere return nothing, decided at each call (STATE-133).
  template <typename Function>
  [[nodiscard]] auto on_main_process(Function function) const {
    return state::run_where(state::main_process(state_), std::move(function));
  }
  template <typename Function>
  [[nodiscard]] auto on_local_main_process(Function function) const {
    return state::run_where(state::local_main_process(state_), std::move(function));
  }
  template <typename Function>
  [[nodiscard]] auto on_last_process(Function function) const {
    return state::run_where(state::last_process(state_), std::move(function));
  }
  template <typename Function>
  [[nodiscard]] auto on_process(int process_index, Function function) const {
    return state::run_where(state::process(state_, process_index), std::move(function));
  }
  template <typename Function>
  [[nodiscard]] auto on_local_process(int local_process_index, Function function) const {
    return state::run_where(state::local_process(state_, local_process_index), std::move(function));
  }

 private:
  template <typename Object>
  auto prepare_first(Object&& object, bool on_device);
  template <typename Object>
  auto prepare_second(Object object);

  void forget_prepared();
  [[nodiscard]] data::EvenBatchesScope even_batches_scope(std::optional<bool> even_batches) const;
  void begin_micro_batch();
  void scale_gathered_gradients(double factor);
  void require_no_search() const;
  void require_whole_gradients(const char* where) const;
  void unscale_owners_of(const std::vector<at::Tensor>& parameters, const char* where);
  static void require_placement_of(std::size_t num_objects, const DevicePlacement& placement);
  std::shared_ptr<modules::ModelEngine> prepare_model(const std::shared_ptr<torch::nn::Module>& model, bool on_device);
  std::shared_ptr<optim::PreparedOptimizer> prepare_optimizer(std::shared_ptr<torch::optim::Optimizer> optimizer);
  std::shared_ptr<optim::PreparedScheduler> prepare_scheduler(std::shared_ptr<optim::Scheduler> scheduler);

  struct Registered;

  AcceleratorOptions options_;
  state::AcceleratorState state_;
  config::DataLoaderConfiguration data_;
  precision::Policy precision_;
  std::shared_ptr<precision::GradScaler> scaler_;
  config::ProfileKwargs profile_;
  config::ProjectConfiguration project_;
  AccumulationWindow window_;
  bool is_triggered_ = false;
  std::unique_ptr<Registered> registered_;
};

template <typename Object>
auto Accelerator::prepare_first(Object&& object, bool on_device) {
  using T = std::remove_cvref_t<Object>;
  if constexpr (ModuleHandle<T>) {
    auto module = module_of(object);
    auto engine = prepare_model(module, on_device);
    auto precision = precision_.for_model(*module);
    return modules::Prepared(std::move(module), std::move(engine), state_.rank().account(), std::move(precision));
  } else if constexpr (std::derived_from<T, torch::optim::Optimizer>) {
    static_assert(!std::is_lvalue_reference_v<Object>, "move the optimizer into prepare(), or pass a shared_ptr to it");
    return prepare_optimizer(std::make_shared<T>(std::move(object)));
  } else if constexpr (std::convertible_to<T, std::shared_ptr<torch::optim::Optimizer>>) {
    return prepare_optimizer(object);
  } else if constexpr (std::same_as<T, data::DataLoader>) {
    return prepare_data_loader(object, {.device_placement = on_device});
  } else {
    require_preparable<T>();
    return T(std::forward<Object>(object));
  }
}

template <typename Object>
auto Accelerator::prepare_second(Object object) {
  if constexpr (std::convertible_to<Object, std::shared_ptr<optim::Scheduler>>) {
    return prepare_scheduler(std::move(object));
  } else {
    return object;
  }
}

}  // namespace lockstep
