#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "lockstep/accelerator/profile_schedule.h"
#include "lockstep/base/export.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/config/profile_kwargs.h"

namespace lockstep {

/// Records, while it lives, which operators run on this rank, when, and how long.
///
///     {
///       auto profiler = accelerator.profile({.output_trace_dir = "traces"});
///       for (const Value& batch : *loader) {
///         train_on(batch);
///         profiler.step();
///       }
///     }  // traces/profile_<rank>.json is written, and all ranks wait for each other
///
/// A trace is Chrome's JSON, which ui.perfetto.dev opens; each step is in it as `ProfilerStep#<n>`. When an exception
/// ends the scope, nothing is written and nobody waits. `stop()` is the same end as the scope's.
///
/// LibTorch has one recorder per process, so that ranks that are threads cannot have one each. What its recorder writes
/// to stderr is kept back by KINETO_LOG_LEVEL=5 in the environment.
///
/// @clause KW-016..020
/// @source Accelerate, Accelerator.profile; PyTorch, torch.profiler.profile
class LOCKSTEP_API Profiler {
 public:
  /// @param group  those who wait for each other at the end; none: a single process
  /// @throws InvalidArgument  for an unknown activity
  /// @throws TypeError, AssertionError  as require_valid() does
  /// @throws NotSupported     on a rank that is a thread
  /// @throws RuntimeError     while another profiler of the process lives
  Profiler(config::ProfileKwargs kwargs, comm::ProcessGroup group);
  /// @throws FileError, AssertionError  as stop, unless that was called
  ~Profiler() noexcept(false);
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Ends the recording; later calls do nothing.
  /// @throws FileError       if the trace cannot be written
  /// @throws AssertionError  if it should be and the schedule has recorded nothing
  void stop();

  /// Ends a step and begins the next. @throws RuntimeError  after stop()
  void step();
  /// The step that runs, counted from 0.
  [[nodiscard]] std::int64_t step_num() const noexcept { return step_num_; }

  /// Writes the trace that was recorded last; in on_trace_ready, say.
  /// @throws AssertionError  before anything was recorded
  /// @throws FileError       if the file cannot be written
  void export_chrome_trace(const std::string& file);

 private:
  struct Recording;

  [[nodiscard]] ProfilerAction action_now() const;
  void move_to(ProfilerAction next);
  void export_to(const std::filesystem::path& folder);
  void begin_step_mark();

  config::ProfileKwargs kwargs_;
  comm::ProcessGroup group_;
  std::int64_t step_num_ = 0;
  ProfilerAction action_ = ProfilerAction::none;
  bool has_stopped_ = false;
  int exceptions_at_start_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace lockstep
