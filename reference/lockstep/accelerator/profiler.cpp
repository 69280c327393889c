#include "lockstep/accelerator/profiler.h"

#include <ATen/Context.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/csrc/profiler/orchestration/observer.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/error.h"
#include "lockstep/base/logging.h"
#include "lockstep/state/rank_context.h"

namespace lockstep {
namespace {

namespace recorder = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

std::set<ActivityType> activities_of(const config::ProfileKwargs& kwargs) {
  std::set<ActivityType> activities;
  for (const auto& word : kwargs.activities.value_or(std::vector<std::string>{"cpu", "cuda"})) {
    if (word != "cpu" && word != "cuda") {
      throw InvalidArgument({.where = "ProfileKwargs(activities)",
                             .expected = "'cpu' or 'cuda'",
                             .got = "'" + word + "'",
                             .fix = "Leave activities out to record whatever the build can."});
    }
    if (word == "cpu") {
      activities.insert(ActivityType::CPU);
    } else if (at::hasCUDA()) {
      activities.insert(ActivityType::CUDA);
    } else if (kwargs.activities) {
      log::warning("ProfileKwargs(activities): 'cuda' is not recorded, for there is no CUDA device");
    }
  }
  if (activities.empty()) {
    throw InvalidArgument({.where = "ProfileKwargs(activities)",
                           .expected = "one that can be recorded here",
                           .got = fmt::format("{}", fmt::join(*kwargs.activities, ", ")),
                           .fix = "Add 'cpu', or leave activities out."});
  }
  return activities;
}

ProfilerConfig config_of(const config::ProfileKwargs& kwargs) {
  // The number of operations follows from the shapes.
  const bool record_shapes = kwargs.record_shapes || kwargs.with_flops;
  return ProfilerConfig(ProfilerState::KINETO, record_shapes, kwargs.profile_memory, kwargs.with_stack,
                        kwargs.with_flops, kwargs.with_modules);
}

// LibTorch keeps the recorder for the process.
class OneAtATime {
 public:
  OneAtATime() {
    if (!taken().exchange(true)) return;
    throw RuntimeError({.where = "Profiler",
                        .expected = "one profiler at a time in a process",
                        .got = "a second one",
                        .fix = "Let the first one end before."});
  }
  ~OneAtATime() { taken().store(false); }
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;

 private:
  static std::atomic<bool>& taken() {
    static std::atomic<bool> flag = false;
    return flag;
  }
};

// What the standard library says about a file, as an error of ours.
void require_written(const std::error_code& error, const std::filesystem::path& file) {
  if (!error) return;
  throw FileError({.where = "Profiler",
                   .expected = "to write " + file.string(),
                   .got = error.message(),
                   .fix = "Make the folder writable, or choose another output_trace_dir."});
}

void require_process() {
  if (!state::RankContext::current().is_thread()) return;
  throw NotSupported({.where = "Profiler",
                      .expected = "a rank that is a process",
                      .got = "one that is a thread: LibTorch records for the whole process",
                      .fix = "Start the ranks as processes."});
}

}  // namespace

// What LibTorch records, and what has come of it.
struct Profiler::Recording {
  enum class State { idle, prepared, running };

  void prepare() {
    recorder::prepareProfiler(config, activities);
    state = State::prepared;
  }
  void start() {
    if (state == State::idle) prepare();
    recorder::enableProfiler(
        config, activities,
        {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE});
    state = State::running;
  }
  void stop() {
    step_mark.reset();
    result = recorder::disableProfiler();
    saved_as.reset();
    state = State::idle;
  }

  // One that was prepared can only be ended once it runs.
  void discard() {
    if (state == State::prepared) start();
    stop();
  }

  OneAtATime only_one;
  ProfilerConfig config;
  std::set<ActivityType> activities;
  State state = State::idle;
  std::unique_ptr<at::RecordFunction> step_mark;
  std::unique_ptr<recorder::ProfilerResult> result;  // of the last recording that ended
  std::optional<std::string> saved_as;               // LibTorch saves a result once
};

Profiler::Profiler(config::ProfileKwargs kwargs, comm::ProcessGroup group)
    : kwargs_(std::move(kwargs)), group_(std::move(group)), exceptions_at_start_(std::uncaught_exceptions()) {
  require_process();
  if (kwargs_.schedule_option) require_valid(*kwargs_.schedule_option);
  recording_ =
      std::unique_ptr<Recording>(new Recording{.config = config_of(kwargs_), .activities = activities_of(kwargs_)});
  move_to(action_now());
}

Profiler::~Profiler() noexcept(false) {
  if (std::uncaught_exceptions() == exceptions_at_start_) {
    stop();
  } else if (recording_->state != Recording::State::idle) {
    recording_->discard();
  }
}

ProfilerAction Profiler::action_now() const {
  return kwargs_.schedule_option ? action_in(*kwargs_.schedule_option, step_num_) : ProfilerAction::record;
}

void Profiler::step() {
  if (has_stopped_) {
    throw RuntimeError({.where = "Profiler::step",
                        .expected = "a profiler that records",
                        .got = "one after stop()",
                        .fix = "Make another one to record more."});
  }
  recording_->step_mark.reset();
  ++step_num_;
  move_to(action_now());
}

void Profiler::move_to(ProfilerAction next) {
  if (std::exchange(action_, next) == ProfilerAction::record_and_save) {
    recording_->stop();
    if (kwargs_.on_trace_ready) kwargs_.on_trace_ready(*this);
  }
  const auto state = recording_->state;
  if (next == ProfilerAction::warmup && state == Recording::State::idle) recording_->prepare();
  if (next != ProfilerAction::record && next != ProfilerAction::record_and_save) return;
  if (state != Recording::State::running) recording_->start();
  begin_step_mark();
}

void Profiler::begin_step_mark() {
  recording_->step_mark = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  if (recording_->step_mark->isActive()) recording_->step_mark->before(fmt::format("ProfilerStep#{}", step_num_));
}

void Profiler::stop() {
  if (std::exchange(has_stopped_, true)) return;
  if (recording_->state == Recording::State::prepared) recording_->start();  // a warm-up is recorded, if little else
  if (recording_->state == Recording::State::running) {
    const bool is_ready = action_ != ProfilerAction::warmup;
    recording_->stop();
    if (is_ready && kwargs_.on_trace_ready) kwargs_.on_trace_ready(*this);
  }
  if (!kwargs_.output_trace_dir) return;
  std::exception_ptr failure;  // the other ranks wait for this one, however its export ends
  try {
    export_to(*kwargs_.output_trace_dir);
  } catch (...) {
    failure = std::current_exception();
  }
  if (group_) group_.barrier().wait();
  if (failure) std::rethrow_exception(failure);
}

void Profiler::export_to(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require_written(error, folder);
  export_chrome_trace(folder / fmt::format("profile_{}.json", group_ ? group_.rank() : 0));
}

namespace {

// What LibTorch counts but leaves out of the trace.
void add_flops(const std::string& file, const recorder::ProfilerResult& result) {
  std::unordered_map<std::uint64_t, std::uint64_t> flops;  // by what the trace calls the event's external id
  for (const auto& event : result.events()) {
    if (event.flops() > 0) flops[event.correlationId()] = event.flops();
  }
  auto trace = nlohmann::ordered_json::parse(std::ifstream(file), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (trace.is_discarded()) require_written(std::make_error_code(std::errc::io_error), file);  // it breaks off
  for (auto& event : trace["traceEvents"]) {
    const auto args = event.find("args");
    if (args == event.end() || !args->is_object() || event.value("cat", "") != "cpu_op") continue;
    const auto id = args->find("External id");
    if (id == args->end() || !id->is_number()) continue;
    const auto found = flops.find(id->get<std::uint64_t>());
    if (found != flops.end()) (*args)["Flops"] = found->second;
  }
  write_file(file, trace.dump());
}

}  // namespace

void Profiler::export_chrome_trace(const std::string& file) {
  if (!recording_->result) {
    throw AssertionError({.where = "export_chrome_trace",
                          .expected = "a trace that was recorded",
                          .got = fmt::format("none until step {}", step_num_),
                          .fix = "Check the schedule, and call step() after each step."});
  }
  std::error_code error;
  if (recording_->saved_as) {
    if (std::filesystem::equivalent(*recording_->saved_as, file, error)) return;
    std::filesystem::copy_file(*recording_->saved_as, file, std::filesystem::copy_options::overwrite_existing, error);
    return require_written(error, file);
  }
  std::filesystem::remove(file, error);
  recording_->result->save(file);  // which says nothing when it cannot
  if (!std::filesystem::exists(file)) require_written(std::make_error_code(std::errc::io_error), file);
  if (kwargs_.with_flops) add_flops(file, *recording_->result);
  recording_->saved_as = file;
}

}  // namespace lockstep
