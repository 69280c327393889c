#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>

#include "lockstep/base/export.h"

namespace c10d {
class Work;
}

namespace lockstep::comm {

/// A posted collective. The tensors it was given must not be touched until `wait()` has returned; they are kept alive.
// Not LOCKSTEP_API: g++ takes no mixture of the two kinds of attributes.
class [[nodiscard, gnu::visibility("default")]] Work {
 public:
  explicit Work(c10::intrusive_ptr<c10d::Work> work);
  Work(Work &&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  /// Blocks until all ranks have done their part. @throws RankLost, Timeout, CollectiveMismatch
  void wait();
  [[nodiscard]] bool is_completed() const;
  /// Of a receive from any rank: the group rank that sent.
  [[nodiscard]] int source_rank() const;

  [[nodiscard]] const c10::intrusive_ptr<c10d::Work>& handle() const noexcept { return work_; }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

}  // namespace lockstep::comm
