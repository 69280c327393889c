#include "lockstep/sim/backend/checked_work.h"

#include <c10/util/Exception.h>

namespace lockstep::sim {

void throw_verdict(const VerdictReached& verdict) { C10_THROW_ERROR(DistBackendError, verdict.what()); }

bool CheckedWork::wait(std::chrono::milliseconds timeout) {
  if (inner_->isCompleted() && inner_->isSuccess()) return inner_->wait(timeout);
  // Closed connections end most waits, but not one for whichever rank sends first.
  const AbortScope abort(*rank_, [inner = inner_] { inner->abort(); });
  return waiting(rank_, wait_, [&] { return inner_->wait(timeout); });
}

void CheckedWork::synchronize() {
  waiting(rank_, wait_, [&] { inner_->synchronize(); });
}

c10::intrusive_ptr<c10::ivalue::Future> CheckedWork::getFuture() {
  auto future = inner_->getFuture();
  if (wait_.kind != layout::WaitKind::none && !future->completed()) {
    rank_->watch_future(wait_, [future] { return future->completed(); });
  }
  return future;
}

}  // namespace lockstep::sim
