#include "lockstep/comm/failure_board.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "lockstep/base/duration.h"
#include "lockstep/comm/process_sighting.h"

namespace lockstep::comm {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr auto kFailureKey = "lockstep/failure";
// How long a rank looks for a reason after a wait of its own has failed. The one that failed posts before it closes its
// sockets, and a launcher reaps within milliseconds; a second covers a machine that swaps.
constexpr auto kLookFor = milliseconds(1000);
constexpr auto kPause = milliseconds(10);

std::string read_key(int rank) { return fmt::format("lockstep/read/{}", rank); }
std::string left_key(int rank) { return fmt::format("lockstep/left/{}", rank); }
std::string waiting_key(int rank) { return fmt::format("lockstep/waiting/{}", rank); }

bool is_time_out(const std::exception& error) {
  const std::string_view text = error.what();
  return text.find("Timed out") != std::string_view::npos || text.find("timed out") != std::string_view::npos ||
         text.find("Timeout") != std::string_view::npos || text.find("timeout") != std::string_view::npos;
}

}  // namespace

bool is_first_hand(const std::exception& error) noexcept {
  return dynamic_cast<const RankLost*>(&error) == nullptr && dynamic_cast<const RelayedError*>(&error) == nullptr;
}

struct FailureBoard::Sighting {
  ProcessState state = ProcessState::unknown;
  int pid = 0;
};

FailureBoard::FailureBoard(Store store, World world) : store_(std::move(store)), world_(world) {}

std::string FailureBoard::rank_key(int rank) const { return fmt::format("lockstep/rank/{}", rank); }

void FailureBoard::announce() {
  const auto me = this_process();
  const nlohmann::json who = {{"host", me.host}, {"pid", me.pid}, {"start", me.start_time}};
  const auto holder = store_.set_if_absent(rank_key(world_.rank), who.dump());
  if (holder == who.dump()) return;
  const auto other = nlohmann::json::parse(holder);
  throw RuntimeError(
      {.where = "rendezvous",
       .expected = "each rank to be one process",
       .got = fmt::format("two processes with RANK={}: pid {} on {} and pid {} on {}", world_.rank,
                          other.at("pid").get<int>(), other.at("host").get<std::string>(), me.pid, me.host),
       .fix = "Give each process its own RANK; a second job needs its own MASTER_PORT."});
}

void FailureBoard::wait_for_all(milliseconds timeout) const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < world_.size; ++rank) keys.push_back(rank_key(rank));
  try {
    store_.wait(keys, timeout, [this] { throw_if_failed("rendezvous"); });
  } catch (const Timeout&) {
    std::vector<int> missing;
    for (int rank = 0; rank < world_.size; ++rank) {
      if (!store_.has(rank_key(rank))) missing.push_back(rank);
    }
    for (const int rank : missing) store_.set(read_key(rank), "never arrived");  // nobody stays for its sake
    throw Timeout(
        {.where = "rendezvous",
         .expected = fmt::format("{} ranks within {} s", world_.size, seconds_of(timeout)),
         .got = fmt::format("{} of {}: rank{} {} never arrived", world_.size - static_cast<int>(missing.size()),
                            world_.size, missing.size() == 1 ? "" : "s", fmt::join(missing, ", ")),
         .fix = "Start every rank, or set WORLD_SIZE to the number that is started."});
  }
}

void FailureBoard::post(const FailureNote& note) noexcept {
  try {
    const nlohmann::json json = {
        {"rank", note.rank}, {"kind", note.kind}, {"message", note.message}, {"step", note.step}};
    store_.set_if_absent(kFailureKey, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } catch (const std::exception&) {
    // The store went with the rank that hosted it; the others see that rank's process gone.
  }
}

std::optional<FailureNote> FailureBoard::first_failure() const {
  const auto text = store_.find(kFailureKey);
  if (!text) return std::nullopt;
  const auto json = nlohmann::json::parse(*text);
  return FailureNote{
      .rank = json.at("rank"), .kind = json.at("kind"), .message = json.at("message"), .step = json.at("step")};
}

void FailureBoard::leave(int exit_code) noexcept {
  if (exit_code != 0) {
    return post({.rank = world_.rank, .kind = "exit", .message = fmt::format("exited with code {}", exit_code)});
  }
  try {
    store_.set(left_key(world_.rank), "exited with code 0");
  } catch (const std::exception&) {  // nobody is left to be told
  }
}

void FailureBoard::mark_read() const noexcept {
  if (read_->exchange(true)) return;
  try {
    store_.set(read_key(world_.rank), "yes");
  } catch (const std::exception&) {  // whoever looks is gone already
  }
}

void FailureBoard::throw_if_failed(const std::string& seen_in) const {
  const auto note = first_failure();
  if (!note) return;
  mark_read();
  throw RankLost(note->rank, note->kind == "lost" ? note->message : note->kind + ": " + note->message, seen_in);
}

FailureBoard::Sighting FailureBoard::look_at(int rank) const {
  const auto text = store_.find(rank_key(rank));
  if (!text) return {};
  const auto json = nlohmann::json::parse(*text);
  const ProcessId id{.host = json.at("host"), .pid = json.at("pid"), .start_time = json.at("start")};
  return {.state = state_of(id), .pid = id.pid};
}

std::optional<FailureNote> FailureBoard::wait_for_note() const {
  const auto deadline = steady_clock::now() + kLookFor;
  while (true) {
    if (auto note = first_failure()) return note;
    if (steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(kPause);
  }
}

void FailureBoard::lose(int rank, const std::string& cause, const std::string& operation, std::int64_t step) {
  post({.rank = rank, .kind = "lost", .message = cause, .step = step});  // so that all ranks tell the same story
  throw_if_failed(operation);
  throw RankLost(rank, cause, operation);
}

std::vector<int> FailureBoard::silent_ranks(const std::vector<int>& members) const {
  std::vector<int> silent;
  for (const int rank : members) {
    if (rank != world_.rank && !store_.has(waiting_key(rank))) silent.push_back(rank);
  }
  return silent;
}

void FailureBoard::all_wait(const std::string& operation, const std::vector<int>& members) const {
  std::vector<std::string> calls;
  for (const int rank : members) {
    calls.push_back(fmt::format("rank {} in {}", rank, store_.find(waiting_key(rank)).value_or("?")));
  }
  throw Timeout({.where = operation,
                 .expected = "all ranks to make the same call within the time-out",
                 .got = fmt::format("every rank waits: {}", fmt::join(calls, ", ")),
                 .fix = "Find the first call in which they differ: in kind, order or shape (ACCELERATE_DEBUG_MODE=1 "
                        "compares shapes), or in how many batches each rank has."});
}

void FailureBoard::explain_time_out(const std::string& operation, std::int64_t step, const std::vector<int>& silent,
                                    const std::string& text) {
  for (const int rank : silent) {
    const auto seen = look_at(rank);
    if (seen.state == ProcessState::stopped) {
      lose(rank, fmt::format("its process {} stands still, stopped by a signal or a debugger", seen.pid), operation,
           step);
    }
  }
  lose(silent.front(), fmt::format("no sign of it since step {}, while {} waited ({})", step, operation, text),
       operation, step);
}

void FailureBoard::explain(const std::exception& error, const std::string& operation, std::int64_t step,
                           const std::vector<int>& members) {
  const std::string text = brief(error);
  try {
    store_.set(waiting_key(world_.rank), operation);
    if (const auto note = wait_for_note()) throw_if_failed(operation);
    for (const int rank : members) {
      if (rank == world_.rank) continue;
      if (const auto left = store_.find(left_key(rank)))
        lose(rank, *left + " while others were at work", operation, step);
      const auto seen = look_at(rank);
      if (seen.state == ProcessState::gone) {
        lose(rank, fmt::format("its process {} is gone and left no reason", seen.pid), operation, step);
      }
    }
    const auto silent = silent_ranks(members);
    if (silent.empty()) all_wait(operation, members);
    if (is_time_out(error)) explain_time_out(operation, step, silent, text);
    // A peer whose time ran out first has closed its sockets, which ended this wait. It will say whom it waited for.
    if (silent.size() + 1 < members.size() && wait_for_note()) throw_if_failed(operation);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& store_error) {
    if (store_.port() == 0 || world_.rank == 0) throw RuntimeError({.where = operation, .got = text});
    throw RankLost(0, "the store that it hosts does not answer (" + brief(store_error) + ")", operation);
  }
  throw RuntimeError({.where = operation, .got = text});
}

void FailureBoard::outlive_readers(milliseconds at_most) const noexcept {
  if (store_.port() == 0) return;  // no rank hosts a file
  if (!store_.is_server()) return mark_read();
  const auto is_awaited = [this](int rank) {
    if (rank == world_.rank || store_.has(read_key(rank))) return false;
    const auto state = look_at(rank).state;
    return state != ProcessState::gone && state != ProcessState::stopped;
  };
  try {
    const auto deadline = steady_clock::now() + at_most;
    for (int rank = 0; rank < world_.size && steady_clock::now() < deadline;) {
      is_awaited(rank) ? std::this_thread::sleep_for(kPause) : static_cast<void>(++rank);
    }
  } catch (const std::exception&) {  // nothing left to wait for
  }
}

}  // namespace lockstep::comm
