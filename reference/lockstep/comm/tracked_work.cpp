#include "lockstep/comm/tracked_work.h"

#include <fmt/format.h>

namespace lockstep::comm {

bool comes_from_network(const std::exception& error) {
  const bool is_librarys = dynamic_cast<const c10::Error*>(&error) != nullptr;
  // Gloo throws runtime errors; a logic error or an allocation that failed comes from code of this rank's.
  if (!is_librarys) return dynamic_cast<const std::runtime_error*>(&error) != nullptr;
  if (dynamic_cast<const c10::DistError*>(&error) != nullptr) return true;
  const std::string_view text = error.what();
  for (const char* word : {"timed out", "Timed out", "timeout", "Connection", "closed", "Broken pipe", "ocket"}) {
    if (text.find(word) != std::string_view::npos) return true;
  }
  return false;
}

TrackedWork::TrackedWork(c10::intrusive_ptr<c10d::Work> inner, std::shared_ptr<StandIns> stand_ins,
                         std::shared_ptr<const GroupContext> group, const char* operation, std::uint64_t sequence)
    : ForwardingWork(std::move(inner)),
      stand_ins_(std::move(stand_ins)),
      group_(std::move(group)),
      operation_(operation),
      sequence_(sequence) {}

bool TrackedWork::wait(std::chrono::milliseconds timeout) {
  const bool done = explained(*group_, fmt::format("{} #{} of group {}", operation_, sequence_, group_->name),
                              [&] { return inner()->wait(timeout); });
  stand_ins_->land();
  return done;
}

void TrackedWork::synchronize() {
  explained(*group_, fmt::format("{} #{} of group {}", operation_, sequence_, group_->name),
            [&] { inner()->synchronize(); });
  stand_ins_->land();
}

c10::intrusive_ptr<c10::ivalue::Future> TrackedWork::getFuture() {
  auto future = inner()->getFuture();
  if (!stand_ins_->any_lands()) return future;
  return future->then(
      [stand_ins = stand_ins_](c10::ivalue::Future& done) {
        auto value = done.value();  // throws when the call failed
        stand_ins->land();
        return value;
      },
      future->elementType());
}

}  // namespace lockstep::comm
