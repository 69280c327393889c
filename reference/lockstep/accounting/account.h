#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/accounting/events.h"
#include "lockstep/accounting/tensor_labels.h"
#include "lockstep/base/export.h"

namespace lockstep::accounting {

/// What is counted together: calls of one operation in one group on one dtype.
struct TrafficKey {
  std::string op;
  std::string group;
  std::string dtype;
  auto operator<=>(const TrafficKey&) const = default;
};

struct TrafficCount {
  std::int64_t calls = 0;
  std::int64_t elements = 0;  ///< of this rank's inputs
  std::int64_t bytes = 0;     ///< of this rank's inputs
  bool operator==(const TrafficCount&) const = default;
};

/// Exact counts of what one rank handed to collectives.
class LOCKSTEP_API Traffic {
 public:
  void add(const TrafficKey& key, const TrafficCount& count);

  [[nodiscard]] const std::map<TrafficKey, TrafficCount>& counts() const noexcept { return counts_; }
  /// Sum over groups and dtypes of one operation, or of all when `op` is empty.
  [[nodiscard]] TrafficCount total(const std::string& op = {}) const;
  /// Volume in elements by the rule of NUM-003: an all-reduce counts twice its input, every other operation once.
  [[nodiscard]] std::int64_t volume() const;
  /// What was added since `before`.
  [[nodiscard]] Traffic since(const Traffic& before) const;

 private:
  std::map<TrafficKey, TrafficCount> counts_;
};

using Observer = std::function<void(const Stamp&, const Event&)>;

/// Ends an observer's subscription when it goes.
class LOCKSTEP_API Subscription {
 public:
  Subscription() = default;
  explicit Subscription(std::function<void()> end) : end_(std::move(end)) {}
  Subscription(Subscription&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription();

 private:
  std::function<void()> end_;
};

/// One rank's account: exact counters that are always on, and typed events for whoever subscribes (docs/events.md).
///
/// Collectives may be posted from several threads of a rank (autograd, workers), so all members are safe to call from
/// any of them. Observers are called on the emitting thread, one event at a time, and must neither use the account nor
/// throw.
class LOCKSTEP_API Account {
 public:
  explicit Account(int rank) { stamp_.rank = rank; }
  ~Account() { *self_ = nullptr; }
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  /// Counts the call; an event is made only when somebody listens.
  void record(const TrafficKey& key, const TrafficCount& count);

  /// Emits what `make` returns. Without subscribers this is one branch, and `make` is not called.
  template <typename Make>
  void emit(Make&& make) {
    if (has_observers()) deliver(Event(make()));
  }
  [[nodiscard]] bool has_observers() const noexcept { return num_observers_.load(std::memory_order_relaxed) != 0; }

  [[nodiscard]] Subscription subscribe(Observer observer);

  [[nodiscard]] Traffic traffic() const;
  [[nodiscard]] Stamp stamp() const;
  /// Parts of the stamp that are told without a lock, so that an allocator may ask, even while an observer runs.
  [[nodiscard]] int rank() const noexcept { return stamp_.rank; }
  [[nodiscard]] Phase phase() const noexcept { return phase_.load(std::memory_order_relaxed); }

  /// Names of tensors, for events and reports.
  [[nodiscard]] TensorLabels& labels() noexcept { return labels_; }

  void set_phase(Phase phase);
  void begin_micro_step();
  /// An optimizer step is done: the step count grows, the micro-step count starts anew.
  void end_step();

 private:
  void deliver(const Event& event);

  mutable std::mutex mutex_;
  Stamp stamp_;
  Traffic traffic_;
  TensorLabels labels_;
  std::atomic<int> num_observers_{0};
  std::atomic<Phase> phase_{Phase::other};  // stamp_.phase, for phase()
  std::map<int, Observer> observers_;
  int next_observer_ = 0;
  // Shared with subscriptions, so that one that outlives the account ends quietly.
  std::shared_ptr<Account*> self_ = std::make_shared<Account*>(this);
};

/// Sets the phase for a scope, and restores the one before.
class LOCKSTEP_API PhaseScope {
 public:
  PhaseScope(Account& account, Phase phase) : account_(account), before_(account.stamp().phase) {
    account_.set_phase(phase);
  }
  ~PhaseScope() { account_.set_phase(before_); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Account& account_;
  Phase before_;
};

/// Appends every event of the account to `path` as a JSON line, for as long as the subscription lives.
/// @throws FileError  when the file cannot be opened
LOCKSTEP_API Subscription write_json_lines(Account& account, const std::string& path);

}  // namespace lockstep::accounting
