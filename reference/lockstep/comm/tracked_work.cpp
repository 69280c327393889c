#include "lockstep/comm/tracked_work.h"

#include <fmt/format.h>

namespace lockstep::comm {

TrackedWork::TrackedWork(c10::intrusive_ptr<c10d::Work> inner, std::shared_ptr<const GroupContext> group,
                         const char* operation, std::uint64_t sequence)
    : inner_(std::move(inner)), group_(std::move(group)), operation_(operation), sequence_(sequence) {}

bool TrackedWork::wait(std::chrono::milliseconds timeout) {
  return explained(*group_, fmt::format("{} #{} of group {}", operation_, sequence_, group_->name),
                   [&] { return inner_->wait(timeout); });
}

void TrackedWork::synchronize() {
  explained(*group_, fmt::format("{} #{} of group {}", operation_, sequence_, group_->name),
            [&] { inner_->synchronize(); });
}

}  // namespace lockstep::comm
