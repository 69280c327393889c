#pragma once

#include <ATen/core/Generator.h>

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "lockstep/accounting/account.h"
#include "lockstep/base/export.h"
#include "lockstep/comm/store.h"
#include "lockstep/interpose/rank_slot.h"
#include "lockstep/state/environment.h"
#include "lockstep/state/gradient_state.h"

namespace lockstep::state {

class PartialState;
struct PartialStateData;
struct AcceleratorStateData;

/// Everything that belongs to one rank: its environment, its process, accelerator and gradient state, its groups, its
/// generator and its account.
///
/// It rides in LibTorch's thread-local state, so that it follows into autograd's threads. In a process that is one rank
/// there is a process-wide one, made at first use from the process's environment; among thread ranks there is none, and
/// code that asks outside a rank gets NoRankContext rather than somebody else's state.
class LOCKSTEP_API RankContext : public interpose::RankLocal, public std::enable_shared_from_this<RankContext> {
 public:
  /// A rank that finds its peers as its environment says.
  static std::shared_ptr<RankContext> from(Environment environment);
  /// The same, from now on the process-wide one: of threads that the user starts, too.
  static std::shared_ptr<RankContext> for_process(Environment environment);
  /// A rank that is a thread: its peers share `store`, and its generator is its own.
  static std::shared_ptr<RankContext> for_thread(World world, comm::Store store, Environment environment);
  ~RankContext() override;

  /// The calling thread's rank. @throws NoRankContext
  static RankContext& current();
  /// The same, but null where there is none yet or none at all: makes nothing, waits for nothing, so that an allocator
  /// may ask.
  static RankContext* find() noexcept;

  [[nodiscard]] const Environment& environment() const noexcept { return environment_; }
  [[nodiscard]] bool is_thread() const noexcept { return thread_store_.has_value(); }
  [[nodiscard]] World thread_world() const noexcept { return thread_world_; }
  [[nodiscard]] const std::optional<comm::Store>& thread_store() const noexcept { return thread_store_; }
  /// The generator that stands for the default one: LibTorch's own in a process, the rank's own among threads.
  [[nodiscard]] at::Generator generator() const;

  [[nodiscard]] GradientState& gradient_state() noexcept { return gradient_state_; }
  [[nodiscard]] const std::shared_ptr<accounting::Account>& account() const noexcept { return account_; }

  /// Starts a thread that belongs to this rank. Every thread of Lockstep's is started through here or like this.
  std::thread start_thread(std::function<void()> run);

  /// Tells the other ranks why this one fails, and closes its groups, so that none of them waits for it (design: a
  /// failing rank tells the others). Does nothing before the ranks have met.
  void report_failure(const std::exception& error) noexcept;
  void report_exit(int code) noexcept;

  /// States that exist; PartialState and AcceleratorState are handles to them.
  std::shared_ptr<PartialStateData> partial;
  std::shared_ptr<AcceleratorStateData> accelerator;
  int num_worlds = 0;  ///< that this rank has made, one after the other

 private:
  explicit RankContext(Environment environment);

  Environment environment_;
  GradientState gradient_state_;
  std::shared_ptr<accounting::Account> account_;
  accounting::Subscription trace_;
  World thread_world_;
  std::optional<comm::Store> thread_store_;
  std::optional<at::Generator> thread_generator_;
};

/// Makes `rank` the current one on this thread, and restores the one before.
class LOCKSTEP_API StateScope {
 public:
  explicit StateScope(std::shared_ptr<RankContext> rank) : scope_(std::move(rank)) {}

 private:
  interpose::RankSlotScope scope_;
};

/// While one lives, this process has thread ranks, and no process-wide rank is made or used.
class LOCKSTEP_API ThreadRanksScope {
 public:
  ThreadRanksScope();
  ~ThreadRanksScope();
  ThreadRanksScope(const ThreadRanksScope&) = delete;
  ThreadRanksScope& operator=(const ThreadRanksScope&) = delete;
};

/// Forgets the process-wide rank: what a test or a freshly forked child needs.
LOCKSTEP_API void reset_process_rank();

}  // namespace lockstep::state
