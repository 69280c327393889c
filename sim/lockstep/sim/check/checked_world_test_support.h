#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/sim/check/board_view.h"
#include "lockstep/sim/check/checked_group.h"
#include "lockstep/sim/check/monitor.h"
#include "lockstep/sim/check/process.h"

/// Whole worlds on the checking core alone: processes that post calls and wait, without any backend.
namespace lockstep::sim {

inline CallSite site_at(std::string_view place) { return {.text = place, .hash = mix(0, place)}; }

/// What a rank of a test does with: calls that wait for their peers by looking at the board, as a backend would.
class TestRank {
 public:
  TestRank(const std::shared_ptr<Board>& board, int rank, CheckOptions options)
      : rank_(CheckedRank::join(board, rank, options, "", {})), monitor_(rank_) {
    // A sanitizer's runtime has a thread that uses some time now and then: it makes no calls.
    for (const auto& thread : threads_of_this_process()) {
      if (thread.tid != getpid()) rank_->add_backend_thread(thread.tid);
    }
    std::vector<int> everyone;
    for (int i = 0; i < board->world_size(); ++i) everyone.push_back(i);
    world_ = group("world", everyone);
  }

  std::shared_ptr<CheckedGroup> group(const std::string& name, const std::vector<int>& ranks) {
    auto group = rank_->join_group(name, ranks);
    wait_until(group->rendezvous(), [&] {
      for (const int rank : ranks) {
        const auto& seat = rank_->board().seat(rank).groups[static_cast<std::size_t>(group->index())];
        if (seat.membership == layout::Membership::none) return false;
      }
      return true;
    });
    return group;
  }

  layout::Wait post(Operation operation, std::initializer_list<std::int64_t> sizes = {4}, int peer = -1, int tag = 0,
                    CheckedGroup* group = nullptr) {
    Shapes shapes;
    shapes.add(6, sizes);
    return (group != nullptr ? *group : *world_)
        .post({.operation = operation, .peer = peer, .tag = tag, .shapes = &shapes}, {});
  }
  layout::Wait post_at(std::string_view place, Operation operation, int peer = -1) {
    return world_->post({.operation = operation, .peer = peer}, {.site = site_at(place)});
  }
  void wait(const layout::Wait& wait) {
    wait_until(wait, [&] {
      for (const int rank : members(wait)) {
        if (rank_->board().seat(rank).groups[wait.group].posted < wait.sequence) return false;
      }
      return true;
    });
  }
  void call(Operation operation, std::initializer_list<std::int64_t> sizes = {4}, CheckedGroup* group = nullptr) {
    wait(post(operation, sizes, -1, 0, group));
  }
  void call_at(std::string_view place, Operation operation, int peer = -1) { wait(post_at(place, operation, peer)); }
  /// Waits for something that never comes by itself.
  void wait_for_ever(const layout::Wait& wait) {
    wait_until(wait, [] { return false; });
  }

  [[nodiscard]] int rank() const { return rank_->rank(); }
  [[nodiscard]] const std::shared_ptr<CheckedRank>& checked() const { return rank_; }
  [[nodiscard]] CheckedGroup& world() const { return *world_; }

 private:
  std::vector<int> members(const layout::Wait& wait) const {
    const auto& group = rank_->board().header().groups[wait.group];
    return {group.ranks.begin(), group.ranks.begin() + group.size};
  }
  void wait_until(const layout::Wait& wait, const std::function<bool()>& is_done) {
    const WaitScope scope(rank_, wait);
    while (!is_done()) {
      rank_->throw_if_judged();
      usleep(1000);
    }
  }

  std::shared_ptr<CheckedRank> rank_;
  Monitor monitor_;
  std::shared_ptr<CheckedGroup> world_;
};

struct Outcome {
  std::string verdict;  ///< the document, or ""
  std::vector<std::string> notes;
};

/// Runs `program` on `num_ranks` processes, as a launcher does that looks at their board.
inline Outcome run_watched(int num_ranks, const std::function<void(TestRank&)>& program, CheckOptions options = {}) {
  const auto job = "checked-world-test-" + std::to_string(getpid());
  const auto board = Board::create(job, num_ranks);
  BoardView view(job);
  view.refresh();
  for (int rank = 0; rank < num_ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      try {
        TestRank self(board, rank, options);
        try {
          program(self);
        } catch (const VerdictReached&) {
        } catch (const std::exception& error) {
          self.checked()->fail("RuntimeError", error.what(), 0, {});
          sleep(1);
        }
      } catch (const std::exception&) {
        _exit(1);
      }
      _exit(0);
    }
  }
  for (int i = 0; i < num_ranks; ++i) {
    int status = 0;
    const pid_t pid = wait(&status);
    if (WIFSIGNALED(status)) {
      view.set_signal(pid, WTERMSIG(status));
    } else {
      EXPECT_EQ(status, 0);
    }
  }
  view.remove_names();
  return {.verdict = view.verdict().value_or(""), .notes = view.notes()};
}

/// @return the verdict, or ""
inline std::string run(int num_ranks, const std::function<void(TestRank&)>& program, CheckOptions options = {}) {
  return run_watched(num_ranks, program, options).verdict;
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
#define EXPECT_HAS(text, part) EXPECT_TRUE(has(text, part)) << "looked for " << (part) << " in " << (text)

}  // namespace lockstep::sim
