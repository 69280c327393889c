#include "lockstep/state/partial_state.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <torch/cuda.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lockstep/base/duration.h"
#include "lockstep/base/error.h"
#include "lockstep/base/logging.h"
#include "lockstep/comm/backend_name.h"
#include "lockstep/state/exit_reporting.h"
#include "lockstep/state/physical_cores.h"
#include "lockstep/value/split.h"
#include "lockstep/value/tensor_ops.h"
#include "lockstep/value/traverse.h"

namespace lockstep::state {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDefaultTimeout = std::chrono::minutes(30);

int num_devices() { return at::hasCUDA() ? static_cast<int>(torch::cuda::device_count()) : 0; }

at::Device device_of(const Placement& placement, const Environment& environment) {
  if (const auto chosen = environment.find("ACCELERATE_TORCH_DEVICE")) return at::Device(*chosen);
  if (placement.on_cpu) {
    return placement.type == DistributedType::no ? at::Device(at::kCPU) : at::Device(at::kCPU, 0);
  }
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(placement.local.rank % num_devices()));
}

// Ranks of one machine share its cores; OpenMP would give every one of them all (STATE-005).
void share_cores(const Placement& placement, const Environment& environment) {
  if (environment.number("OMP_NUM_THREADS").value_or(0) > 0) return;
  const int threads = std::max(1, num_physical_cores() / std::max(1, placement.local.size));
  at::set_num_threads(threads);
  if (placement.local.rank == 0) {
    log::warning(fmt::format("OMP_NUM_THREADS is unset: each of {} local ranks computes with {} thread{}",
                             placement.local.size, threads, threads == 1 ? "" : "s"));
  }
}

comm::Store open_store(const RankContext& rank, const Placement& placement, milliseconds timeout) {
  if (rank.thread_store()) return *rank.thread_store();
  const auto& where = placement.rendezvous;
  auto store = where.file.empty() ? comm::Store::tcp(where.host, where.port, where.hosted_here, timeout)
                                  : comm::Store::file(where.file, placement.world.size, timeout);
  const auto attempt = attempt_prefix(rank.environment());
  // A later world of the same ranks must not find the addresses of the one before.
  return store.with_prefix(rank.num_worlds == 0 ? attempt : fmt::format("{}/world{}", attempt, rank.num_worlds));
}

Placement place_rank(const RankContext& rank, const PartialStateOptions& options) {
  if (!rank.is_thread()) {
    return place(rank.environment(), {.cpu = options.cpu, .backend = options.backend, .num_devices = num_devices()});
  }
  Placement placement;
  placement.type = DistributedType::multi_cpu;
  placement.world = placement.local = rank.thread_world();
  placement.backend = comm::with_inner(chosen_backend(rank.environment()).value_or("threads"), "threads");
  return placement;
}

// What a backend that is a plug-in is told of the environment, which it does not read itself.
std::string plugin_options(const Environment& environment, World world) {
  nlohmann::json options = {{"world_size", world.size}};
  if (const auto job = environment.find("LOCKSTEP_JOB")) options["job"] = *job;
  if (const auto level = environment.find("LOCKSTEP_CHECK")) options["level"] = *level;
  if (const auto spec = environment.find("LOCKSTEP_SIM_SPEC")) {
    options["spec"] = nlohmann::json::parse(*spec, nullptr, /*allow_exceptions=*/false);
    if (!options["spec"].is_object()) {
      throw InvalidArgument({.where = "LOCKSTEP_SIM_SPEC",
                             .expected = "a JSON object",
                             .got = *spec,
                             .fix = "Start the ranks with lockstep sim, which sets it, or unset it."});
    }
  }
  return options.dump();
}

// Making a group connects each rank with the others, and returns when this rank's own connections stand. One that has
// little to do, and ends at once, must not close them while others are still at theirs.
void wait_until_all_are_connected(comm::Store store, const PartialStateData& state, milliseconds timeout) {
  constexpr auto kAllConnected = "lockstep/all_connected";
  if (store.add("lockstep/connected", 1) == state.placement.world.size) store.set(kAllConnected, "yes");
  store.wait({kAllConnected}, timeout, [&state] { state.failures->throw_if_failed("rendezvous"); });
}

std::shared_ptr<PartialStateData> make_world(RankContext& rank, const PartialStateOptions& options) {
  const auto& environment = rank.environment();
  if (options.timeout) require_positive("PartialState(timeout)", *options.timeout);
  auto state = std::make_shared<PartialStateData>();
  state->placement = place_rank(rank, options);
  const auto& placement = state->placement;
  state->device = device_of(placement, environment);
  if (placement.type == DistributedType::no) return state;

  if (placement.type == DistributedType::multi_cpu && !rank.is_thread()) share_cores(placement, environment);
  const auto timeout = options.timeout.value_or(environment.seconds("LOCKSTEP_TIMEOUT").value_or(kDefaultTimeout));
  auto store = open_store(rank, placement, timeout);
  state->store = store;
  state->failures = std::make_shared<comm::FailureBoard>(store, placement.world);
  rank.partial = state;  // from here on a failure is told to the others
  if (!rank.is_thread()) report_process_exit(rank.weak_from_this());
  state->failures->announce();
  state->failures->wait_for_all(timeout);

  std::vector<int> ranks(static_cast<std::size_t>(placement.world.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  state->group = comm::ProcessGroup::create(store, ranks, placement.world.rank,
                                            {.backend = placement.backend,
                                             .name = "world",
                                             .timeout = timeout,
                                             .network_interface = environment.find("GLOO_SOCKET_IFNAME").value_or(""),
                                             .plugin_options = plugin_options(environment, placement.world),
                                             .debug = environment.flag("ACCELERATE_DEBUG_MODE")},
                                            rank.account(), state->failures);
  if (!rank.is_thread()) wait_until_all_are_connected(store, *state, timeout);
  ++rank.num_worlds;
  if (!rank.is_thread() && !environment.flag("FORK_LAUNCHED")) {  // there the launcher names the rank in each line
    auto settings = log::settings();
    settings.rank = placement.world.rank;
    log::set_settings(settings);
  }
  rank.account()->emit(
      [&] { return accounting::RunBegin{.world_size = placement.world.size, .backend = placement.backend}; });
  return state;
}

}  // namespace

bool is_set_up(const RankContext& rank) { return rank.partial && !rank.partial->is_reset; }

PartialState::PartialState(const PartialStateOptions& options) : rank_(RankContext::current().shared_from_this()) {
  if (is_set_up(*rank_)) return;
  if (rank_->partial && rank_->partial->group) {  // reset, but not destroyed: the ranks have met already
    rank_->partial->is_reset = false;
    return;
  }
  try {
    rank_->partial = make_world(*rank_, options);
  } catch (const std::exception& error) {
    rank_->report_failure(error);
    rank_->partial.reset();
    throw;
  }
}

namespace {

const PartialStateData& data_of(const std::shared_ptr<RankContext>& rank, const char* attribute) {
  if (is_set_up(*rank)) return *rank->partial;
  throw AttributeError({.where = std::string("PartialState.") + attribute,
                        .expected = "a state that has been set up",
                        .got = "one that was reset",
                        .fix = "Construct a PartialState or an Accelerator again."});
}

}  // namespace

int PartialState::num_processes() const { return data_of(rank_, "num_processes").placement.world.size; }
int PartialState::process_index() const { return data_of(rank_, "process_index").placement.world.rank; }
int PartialState::local_process_index() const { return data_of(rank_, "local_process_index").placement.local.rank; }
DistributedType PartialState::distributed_type() const { return data_of(rank_, "distributed_type").placement.type; }
at::Device PartialState::device() const { return data_of(rank_, "device").device; }
const comm::ProcessGroup& PartialState::world_group() const { return data_of(rank_, "world_group").group; }
RankContext& PartialState::rank() const { return *rank_; }
bool PartialState::initialized() const { return is_set_up(*rank_); }
bool PartialState::debug() const {
  static_cast<void>(data_of(rank_, "debug"));
  return rank_->environment().flag("ACCELERATE_DEBUG_MODE");
}
bool PartialState::fork_launched() const { return rank_->environment().flag("FORK_LAUNCHED"); }
bool PartialState::use_distributed() const { return distributed_type() != DistributedType::no && num_processes() > 1; }

std::optional<std::string> PartialState::backend() const {
  const auto& group = world_group();
  return group ? std::optional(comm::moving_backend(group.backend())) : std::nullopt;
}

void PartialState::wait_for_everyone() const {
  if (const auto& group = world_group()) group.barrier().wait();
}

void PartialState::print(std::string_view line) const {
  if (is_local_main_process()) std::cout << line << std::endl;
}

namespace {

// The tensors that were split themselves; elements of a list that was split stay where they are.
Value split_tensors_on(at::Device device, const Value& part) {
  if (part.is_tensor()) return value::send_to_device(part, device);
  if (!part.is_dict()) return part;
  return value::map_children(part,
                             [device](const Value& child, std::size_t) { return split_tensors_on(device, child); });
}

}  // namespace

Value PartialState::split_between_processes(const Value& inputs, bool apply_padding) const {
  const World world{.rank = process_index(), .size = num_processes()};
  auto part = value::split_between(inputs, world, apply_padding);
  return apply_padding && world.size > 1 ? split_tensors_on(device(), part) : part;
}

void PartialState::destroy_process_group() {
  if (fork_launched() || !rank_->partial) return;
  rank_->partial->group = {};
  rank_->partial->failures.reset();
  rank_->partial->store.reset();
}

void PartialState::reset() {
  if (const auto& partial = RankContext::current().partial) partial->is_reset = true;
}

std::string PartialState::to_text() const {
  const auto name = backend();
  return fmt::format(
      "Distributed environment: {}{}\nNum processes: {}\nProcess index: {}\nLocal process index: {}\nDevice: {}\n",
      to_word(distributed_type()), name ? "  Backend: " + *name : "", num_processes(), process_index(),
      local_process_index(), device().str());
}

}  // namespace lockstep::state
