#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/sim/check/board.h"
#include "lockstep/sim/check/call.h"

namespace lockstep::sim {

/// How much is checked.
enum class Level : std::uint8_t {
  off,      ///< nothing
  sampled,  ///< deadlocks always, the calls' fingerprints every n-th time
  full,
};

struct CheckOptions {
  Level level = Level::full;
  std::uint64_t sample_every = 1;  ///< of Level::sampled; the same on all ranks
  bool strict_places = false;      ///< calls from different lines do not match; else that is a note
  bool hold = false;               ///< after a verdict the ranks stay where they are, for a debugger
  double stall_s = 0;              ///< a rank that lets others wait this long is a straggler; 0: no limit
  /// "full", "off" or "sampled:N". @throws std::invalid_argument for another word
  static CheckOptions with_level(std::string_view word);
};

/// The run is over: a verdict was reached, by this rank or another one.
class VerdictReached : public std::runtime_error {
 public:
  /// @param json  docs/reference/verdict.md; its cause is the message
  explicit VerdictReached(std::string json);
  [[nodiscard]] const std::string& json() const noexcept { return json_; }

 private:
  std::string json_;
};

/// A place in the user's code as the report shows it; made from frames only when there is something to report.
struct PlaceText {
  std::string file;
  int line = 0;
  std::string function;
};
/// @param module_table  of the rank's process (place/module_table.h)
using ResolvePlace = std::function<PlaceText(std::string_view module_table, std::span<const std::uint64_t> frames)>;

/// What the core leaves to its adapter. Either may be empty.
struct Hooks {
  ResolvePlace resolve;
  /// Called in the one rank of a world that reached the verdict, with the document.
  std::function<void(const std::string& json)> report;
};

/// Frees a thread's seat if the thread has ended.
void free_if_ended(layout::ThreadSeat& seat);

class CheckedGroup;

/// One rank's seat on the board of its world, and what only its own process knows. Safe to use from all its threads.
class CheckedRank : public std::enable_shared_from_this<CheckedRank> {
 public:
  /// Takes the seat, for good: a board has one process per rank. @throws std::runtime_error when it is taken
  static std::shared_ptr<CheckedRank> join(std::shared_ptr<Board> board, int rank, CheckOptions options,
                                           std::string_view module_table, Hooks hooks);
  ~CheckedRank();
  CheckedRank(const CheckedRank&) = delete;
  CheckedRank& operator=(const CheckedRank&) = delete;

  /// @param ranks  world ranks in group order, this one among them
  std::shared_ptr<CheckedGroup> join_group(std::string_view name, const std::vector<int>& ranks);

  [[nodiscard]] Board& board() const noexcept { return *board_; }
  [[nodiscard]] layout::RankSeat& seat() const noexcept { return seat_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] const CheckOptions& options() const noexcept { return options_; }
  [[nodiscard]] const ResolvePlace& resolver() const noexcept { return hooks_.resolve; }

  /// The rank ends well, and makes no further call.
  void leave() noexcept;
  /// The rank ends by itself, by an exception or an exit code. That is the verdict, unless there is one already: it is
  /// where it began, whatever happens to the others now.
  void fail(std::string_view kind, std::string_view message, std::int64_t step, const CallSite& site);
  /// Makes this the verdict of the world, unless there is one already, and reports it.
  void conclude(const std::string& json);
  /// @throws VerdictReached  if there is one (and it is not held)
  void throw_if_judged() const;
  /// After a wait that failed: gives the judge a second to find out why. @throws VerdictReached
  void look_for_verdict() const;

  /// What the notes are to say of this rank once, whatever becomes of the run.
  void remark(layout::Remark remark) noexcept { seat_.remarks.fetch_or(static_cast<std::uint32_t>(remark)); }

  /// What a thread waits for that waits for a key of the store.
  layout::Wait store_wait(std::string_view key);
  /// The calling thread's seat, or none when too many threads communicate.
  layout::ThreadSeat* thread_seat();

  /// Called by the monitor's thread when there is a verdict: closes connections, so that waits end.
  /// @return a number for remove_abort
  int add_abort(std::function<void()> abort);
  void remove_abort(int number);
  void abort_all();

  /// A backend is being made; threads that are not among these, and those that are there at the end, serve it: what
  /// they wait for is the network.
  void begin_backend(std::set<std::int32_t> threads_before);
  void end_backend(const std::set<std::int32_t>& threads_after);
  /// A thread that is known to make no call of its own, such as a progress bar's.
  void add_backend_thread(std::int32_t tid);
  [[nodiscard]] bool is_backend_thread(std::int32_t tid);

  /// A future was handed out that stands for this wait; it cannot be wrapped, so the monitor watches who handed it out.
  void watch_future(const layout::Wait& wait, std::function<bool()> is_completed);
  /// The calling thread's wait in a future has failed: gives the judge a second to find out why.
  void look_for_verdict_on_future();
  /// Gives up every future that watch_future was told of, here and now: for an adapter whose tensors cannot be given up
  /// by another thread later. The caller holds no lock that they need.
  void forget_futures();
  /// For the monitor: per thread, the first wait whose future is incomplete.
  std::map<std::int32_t, layout::Wait> incomplete_futures();

 private:
  friend class CheckedGroup;
  friend class WaitScope;
  [[nodiscard]] bool is_ours() const noexcept;
  void stand_aside_of_exit() const;
  CheckedRank(std::shared_ptr<Board> board, int rank, CheckOptions options, Hooks hooks);
  /// Offset of a text in the arena, put there if need be; 0 when it is empty or the arena is full.
  std::uint32_t text(std::string_view text);  // under the mutex
  /// A place as it lies on the board.
  layout::Site site_of(const CallSite& site);  // under the mutex
  /// Lets it be known that a table of the board is too small.

  // Looked up at every call, without making a string of what is looked up.
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  struct HandedOut {
    std::int32_t tid;
    layout::Wait wait;
    std::function<bool()> is_completed;
  };

  std::shared_ptr<Board> board_;
  int rank_;
  layout::RankSeat& seat_;
  CheckOptions options_;
  Hooks hooks_;
  std::uint64_t id_;  // of this object among all of the process, for the threads' memory of their seats

  std::mutex mutex_;  // this process's threads take turns in writing the seat
  std::uint64_t num_calls_ = 0;
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> texts_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> noted_sites_;  // pairs of which there is a note
  std::map<std::pair<std::string, std::vector<int>>, int> num_instances_;
  std::mutex aborts_mutex_;
  std::map<int, std::function<void()>> aborts_;
  int next_abort_ = 0;
  std::mutex backend_threads_mutex_;
  std::set<std::int32_t> backend_threads_;
  std::optional<std::set<std::int32_t>> threads_before_;
  std::mutex giving_up_mutex_;  ///< held by the monitor until the futures that it has taken out are destroyed
  /// Moves the completed ones out of futures_; under futures_mutex_.
  void take_completed(std::vector<HandedOut>& into);

  std::mutex futures_mutex_;
  std::vector<HandedOut> futures_;
  std::map<std::int32_t, layout::Wait> last_futures_;  // the one that each thread was handed last
};

/// While it lives, `abort` is called when there is a verdict.
class AbortScope {
 public:
  AbortScope(CheckedRank& rank, std::function<void()> abort) : rank_(rank), number_(rank.add_abort(std::move(abort))) {}
  ~AbortScope() { rank_.remove_abort(number_); }
  AbortScope(const AbortScope&) = delete;
  AbortScope& operator=(const AbortScope&) = delete;

 private:
  CheckedRank& rank_;
  int number_;
};

/// While it lives, the calling thread waits. Inside another one it adds nothing: what the thread waits for as a whole,
/// the coming together of a group, says more than the keys of the store by which it does so.
class WaitScope {
 public:
  WaitScope(const std::shared_ptr<CheckedRank>& rank, layout::Wait wait, const CallSite& site = {});
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  std::shared_ptr<CheckedRank> rank_;
  layout::ThreadSeat* seat_;
};

}  // namespace lockstep::sim
