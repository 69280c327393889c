#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>
#include <utility>

#include "lockstep/base/export.h"

namespace lockstep::interpose {

/// Whatever belongs to a rank derives from this, so that it can ride in LibTorch's thread-local state.
using RankLocal = c10::DebugInfoBase;

/// The object that rides on this thread; null outside any RankSlotScope.
LOCKSTEP_API RankLocal* rank_slot() noexcept;

/// Installs an object for this thread, and restores the one before.
///
/// LibTorch has no slot for strangers' thread-local data, but its ThreadLocalDebugInfo does the very thing needed: it
/// is copied into autograd's threads and into tasks that LibTorch forks, so that a hook that runs there still knows its
/// rank. The slot TEST_INFO_2 is used by LibTorch's own unit tests alone (c10/util/ThreadLocalDebugInfo.h), hence free
/// in a program; rank_slot_test.cpp fails loudly should a release change that or stop carrying it along.
class LOCKSTEP_API RankSlotScope {
 public:
  explicit RankSlotScope(std::shared_ptr<RankLocal> object)
      : guard_(c10::DebugInfoKind::TEST_INFO_2, std::move(object)) {}

 private:
  c10::DebugInfoGuard guard_;
};

}  // namespace lockstep::interpose
