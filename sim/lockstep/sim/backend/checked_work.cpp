#include "lockstep/sim/backend/checked_work.h"

#include <c10/util/Exception.h>

namespace lockstep::sim {

void throw_verdict(const VerdictReached& verdict) { C10_THROW_ERROR(DistBackendError, verdict.what()); }

template <typename Block>
auto CheckedWork::abortable(Block&& block) {
  const AbortScope abort(*rank_, [work = inner()] { work->abort(); });
  return waiting(rank_, wait_, block);
}

bool CheckedWork::wait(std::chrono::milliseconds timeout) {
  if (inner()->isCompleted() && inner()->isSuccess()) return inner()->wait(timeout);
  return abortable([&] { return inner()->wait(timeout); });
}

void CheckedWork::synchronize() {
  abortable([&] { inner()->synchronize(); });
}

c10::intrusive_ptr<c10::ivalue::Future> CheckedWork::getFuture() {
  auto future = inner()->getFuture();
  // One that has failed already is waited for as well, and its reason asked for.
  if (wait_.kind != layout::WaitKind::none && (!future->completed() || future->hasError())) {
    rank_->watch_future(wait_, [future] { return future->completed(); });
  }
  return future;
}

}  // namespace lockstep::sim
