#include "lockstep/state/exit_reporting.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <mutex>

#include "lockstep/base/error.h"
#include "lockstep/base/logging.h"
#include "lockstep/state/partial_state.h"

namespace lockstep::state {
namespace {

std::weak_ptr<RankContext> reporting_rank;
std::terminate_handler handler_before = nullptr;
pid_t reporting_process = 0;

// A process that the rank forks is no rank, however it ends.
std::shared_ptr<RankContext> rank_of_this_process() {
  return getpid() == reporting_process ? reporting_rank.lock() : nullptr;
}

void report_uncaught() {
  const auto rank = rank_of_this_process();
  const auto uncaught = std::current_exception();
  if (rank && uncaught) {
    try {
      std::rethrow_exception(uncaught);
    } catch (const std::exception& error) {
      log::error(std::string(kind_of(error)) + ": " + brief(error));
      rank->report_failure(error);
    } catch (...) {
      rank->report_failure(RuntimeError("an exception of unknown type"));
    }
  }
  handler_before();
}

void report_exit(int code, void*) {
  if (const auto rank = rank_of_this_process()) rank->report_exit(code);
}

}  // namespace

void report_process_exit(std::weak_ptr<RankContext> rank) {
  reporting_rank = std::move(rank);
  reporting_process = getpid();
  static std::once_flag once;
  std::call_once(once, [] {
    handler_before = std::set_terminate(report_uncaught);
    on_exit(report_exit, nullptr);
  });
}

void leave_world(PartialStateData& state) noexcept {
  try {
    if (state.group) state.group.abort();
  } catch (const std::exception&) {  // it is closed already
  }
  if (state.failures) state.failures->outlive_readers();
  state.failures.reset();
}

}  // namespace lockstep::state
