// Every way in which a rank may fail, on the first and the last rank, at every place where the others may be waiting
// for it: each ends on every rank within the time-out, the rank where it began is named, by the launcher and by its
// peers, and ci/run_one sees to it that nothing is left behind.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "lockstep/data/data_loader.h"
#include "lockstep/launch/debug_launcher.h"
#include "lockstep/state/partial_state.h"
#include "run_ranks.h"

namespace lockstep::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kRanks = 3;
constexpr milliseconds kTimeout = std::chrono::seconds(3);

enum class Fault { exception, exit, kill, stop };
enum class Place { collective, computation, loader, rendezvous };

struct Case {
  Fault fault;
  int rank;
  Place place;
};

void fail_by(Fault fault) {
  switch (fault) {
    case Fault::exception: throw std::runtime_error("planted");
    case Fault::exit: std::exit(3);
    case Fault::kill: raise(SIGKILL); return;
    case Fault::stop: raise(SIGSTOP); return;
  }
}

struct FailingDataset {
  Fault fault;
  bool fails;

  [[nodiscard]] std::size_t size() const { return 8; }
  [[nodiscard]] at::Tensor get(std::size_t index) const {
    if (fails && index == 3) fail_by(fault);
    return at::full({1}, static_cast<double>(index));
  }
};

void all_reduce(const state::PartialState& state) { state.world_group().all_reduce(at::ones({4})).wait(); }

// The rank waits in a barrier that the others reach only later, and fails there.
void fail_in_collective(const state::PartialState& state, Fault fault) {
  if (fault == Fault::exception) {
    state.world_group().broadcast(at::ones({4}), {.root = comm::Member::global(kRanks)}).wait();  // no such rank
    return;
  }
  std::thread([fault] {
    std::this_thread::sleep_for(milliseconds(100));
    fail_by(fault);
  }).detach();
  state.wait_for_everyone();
}

void run(const Case& test) {
  const int rank = state::Environment::of_process().number("RANK").value();
  const bool fails = rank == test.rank;
  if (fails && test.place == Place::rendezvous) fail_by(test.fault);
  const state::PartialState state;
  all_reduce(state);
  switch (test.place) {
    case Place::collective:
      if (fails) fail_in_collective(state, test.fault);
      // On a busy machine a process takes its time to exit; until then its barrier is as good as any.
      std::this_thread::sleep_for(milliseconds(test.fault == Fault::exit ? 1500 : 300));
      state.wait_for_everyone();
      break;
    case Place::computation:
      if (fails) fail_by(test.fault);
      all_reduce(state);
      break;
    case Place::loader:
      for (const auto& batch : data::DataLoader(FailingDataset{test.fault, fails})) {
        state.world_group().all_reduce(batch.tensor()).wait();
      }
      break;
    case Place::rendezvous: break;
  }
}

class FailingRank : public testing::TestWithParam<Case> {};

TEST_P(FailingRank, IsNamedOnEveryRankWithinTheTimeout) {
  const auto test = GetParam();
  const auto begin = steady_clock::now();
  const auto failures = test::failures_of(kRanks, [&test] { run(test); }, {.timeout = kTimeout});
  // A stopped rank is noticed by the time-out; all else at once. Looking for the reason takes a second at most.
  EXPECT_LT(steady_clock::now() - begin, kTimeout + milliseconds(6000));
  ASSERT_EQ(failures.size(), static_cast<std::size_t>(kRanks)) << "a rank did not notice";
  const auto& first = failures.front();
  EXPECT_EQ(first.rank, test.rank) << first.message;
  switch (test.fault) {
    case Fault::exception: EXPECT_TRUE(first.kind == "RuntimeError" || first.kind == "ValueError") << first.kind; break;
    case Fault::exit: EXPECT_EQ(first.exit_code, 3); break;
    case Fault::kill: EXPECT_EQ(first.signal, SIGKILL); break;
    case Fault::stop: EXPECT_EQ(first.kind, "timeout"); break;
  }
  const auto name = "rank " + std::to_string(test.rank);
  for (auto other = failures.begin() + 1; other != failures.end(); ++other) {
    EXPECT_NE(other->message.find(name), std::string::npos) << "rank " << other->rank << ": " << other->message;
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto fault : {Fault::exception, Fault::exit, Fault::kill, Fault::stop}) {
    for (const int rank : {0, kRanks - 1}) {
      for (const auto place : {Place::collective, Place::computation, Place::loader, Place::rendezvous}) {
        cases.push_back({fault, rank, place});
      }
    }
  }
  return cases;
}

std::string name_of(const Case& test) {
  constexpr const char* faults[] = {"exception", "exit", "kill", "stop"};
  constexpr const char* places[] = {"collective", "computation", "loader", "rendezvous"};
  return std::string(faults[static_cast<int>(test.fault)]) + "_rank" + std::to_string(test.rank) + "_" +
         places[static_cast<int>(test.place)];
}

void PrintTo(const Case& test, std::ostream* to) { *to << name_of(test); }

INSTANTIATE_TEST_SUITE_P(Matrix, FailingRank, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace lockstep::launch
