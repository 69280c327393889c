#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/export.h"
#include "lockstep/base/world.h"
#include "lockstep/comm/store.h"

namespace lockstep::comm {

/// Why a rank is gone, as it or its launcher told the others.
struct FailureNote {
  int rank = 0;
  std::string kind;  ///< kind() of the error, or "exit", "signal", "lost"
  std::string message;
  std::int64_t step = 0;

  bool operator==(const FailureNote&) const = default;
};

/// Whether a rank that ends with this error failed by itself, and did not merely lose a peer or hear of its error.
LOCKSTEP_API bool is_first_hand(const std::exception& error) noexcept;

/// How a failing rank tells the others (design: a failing rank posts its reason, closes its groups, then exits; a rank
/// whose wait throws looks here for the reason before it guesses).
///
/// Keys: `lockstep/rank/<r>` who a rank is, `lockstep/failure` the first failure of the job, `lockstep/read/<r>` that
/// a rank needs the store no more, `lockstep/waiting/<r>` in which call a rank was when its wait failed.
class LOCKSTEP_API FailureBoard {
 public:
  FailureBoard(Store store, World world);

  /// Tells the others which process this rank is. @throws RuntimeError when another process already holds the rank
  void announce();
  /// Waits until all ranks have announced themselves. Ends early, with RankLost, when one of them failed.
  /// @throws Timeout  naming the ranks that never arrived
  void wait_for_all(std::chrono::milliseconds timeout) const;

  /// Posts the failure unless another one came first.
  void post(const FailureNote& note) noexcept;
  /// This rank's process ends: a failure unless the code is 0, and then a reason for those who still wait for it.
  void leave(int exit_code) noexcept;
  [[nodiscard]] std::optional<FailureNote> first_failure() const;
  /// @throws RankLost  if a rank has failed
  void throw_if_failed(const std::string& seen_in) const;

  /// Rethrows `error`, which a wait in `operation` ended with, as what is behind it: RankLost with the rank and its own
  /// reason, or the signal, or that its process stands still, or that there is no sign of it; Timeout when every rank
  /// waits. Looks for up to a second, and another one when a peer seems to know more.
  /// @param members  the group's global ranks
  [[noreturn]] void explain(const std::exception& error, const std::string& operation, std::int64_t step,
                            const std::vector<int>& members);

  /// A rank leaves. The one that hosts the store stays until the others have read why or left too, 5 s at most.
  void outlive_readers(std::chrono::milliseconds at_most = std::chrono::seconds(5)) const noexcept;

  [[nodiscard]] World world() const noexcept { return world_; }

 private:
  struct Sighting;
  [[nodiscard]] std::string rank_key(int rank) const;
  [[nodiscard]] Sighting look_at(int rank) const;
  [[nodiscard]] std::optional<FailureNote> wait_for_note() const;
  [[nodiscard]] std::vector<int> silent_ranks(const std::vector<int>& members) const;
  [[noreturn]] void all_wait(const std::string& operation, const std::vector<int>& members) const;
  [[noreturn]] void explain_time_out(const std::string& operation, std::int64_t step, const std::vector<int>& silent,
                                     const std::string& text);
  [[noreturn]] void lose(int rank, const std::string& cause, const std::string& operation, std::int64_t step);
  void mark_read() const noexcept;

  mutable Store store_;
  World world_;
  std::shared_ptr<std::atomic<bool>> read_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace lockstep::comm
