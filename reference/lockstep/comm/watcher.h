#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/group_context.h"

struct lockstep_watcher_v1;

namespace lockstep::comm {

/// Makes a plug-in the one that watches over this process. A process has one at most; the first one stays.
void set_watcher(const lockstep_watcher_v1* watcher) noexcept;
const lockstep_watcher_v1* watcher() noexcept;

/// While it lives, the watcher knows of the call that this thread makes what c10d's arguments do not tell.
class WatchedCall {
 public:
  WatchedCall(const GroupContext& group, const std::vector<at::Tensor>& inputs);
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

 private:
  const lockstep_watcher_v1* watcher_;
  std::string label_;  // the watcher reads it until the call is over
};

/// While it lives, the watcher knows that this thread waits for a key of the store.
class WatchedKeyWait {
 public:
  explicit WatchedKeyWait(const std::string& key);
  ~WatchedKeyWait();
  WatchedKeyWait(const WatchedKeyWait&) = delete;
  WatchedKeyWait& operator=(const WatchedKeyWait&) = delete;

 private:
  const lockstep_watcher_v1* watcher_;
};

/// Gives the watcher a moment to reach a verdict about a call of this thread's that has failed.
void await_verdict() noexcept;

/// Ends what this thread is at if the watcher has reached a verdict.
/// @throws CollectiveMismatch, Deadlock, RankLost, Timeout  as the verdict is
void throw_verdict();

/// Tells the watcher that this rank makes no further call, since its process ends.
void tell_watcher_of_end() noexcept;

/// Tells the watcher that this rank fails by itself.
void tell_watcher_of_failure(const std::string& kind, const std::string& message, std::int64_t step) noexcept;

}  // namespace lockstep::comm
