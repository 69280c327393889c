#include "lockstep/accounting/account.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "lockstep/base/error.h"

namespace lockstep::accounting {
namespace {

const TrafficKey kAllReduce{"allreduce", "world", "Float"};

TEST(Traffic, CountsCallsElementsAndBytesPerKey) {
  Account account(0);
  account.record(kAllReduce, {1, 10, 40});
  account.record(kAllReduce, {1, 5, 20});
  account.record({"broadcast", "world", "Long"}, {1, 3, 24});
  const auto traffic = account.traffic();
  EXPECT_EQ(traffic.counts().at(kAllReduce), (TrafficCount{2, 15, 60}));
  EXPECT_EQ(traffic.total("broadcast"), (TrafficCount{1, 3, 24}));
  EXPECT_EQ(traffic.total(), (TrafficCount{3, 18, 84}));
}

TEST(NUM_003, VolumeCountsAnAllReduceTwiceAndOthersOnce) {
  Traffic traffic;
  traffic.add(kAllReduce, {1, 10, 40});
  traffic.add({"allgather", "world", "Float"}, {1, 7, 28});
  EXPECT_EQ(traffic.volume(), 2 * 10 + 7);
}

TEST(Traffic, SinceGivesOnlyWhatWasAdded) {
  Account account(0);
  account.record(kAllReduce, {1, 10, 40});
  const auto before = account.traffic();
  account.record(kAllReduce, {1, 2, 8});
  EXPECT_EQ(account.traffic().since(before).total(), (TrafficCount{1, 2, 8}));
  EXPECT_TRUE(account.traffic().since(account.traffic()).counts().empty());
}

TEST(Account, MakesNoEventWithoutASubscriber) {
  Account account(0);
  int made = 0;
  const auto make = [&made] { return ++made, RunBegin{}; };
  account.emit(make);
  EXPECT_EQ(made, 0);
  int seen = 0;
  {
    const auto subscription = account.subscribe([&seen](const Stamp&, const Event&) { ++seen; });
    account.emit(make);
  }
  account.emit(make);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(seen, 1);
}

TEST(Account, StampsStepMicroStepAndPhase) {
  Account account(3);
  std::vector<Stamp> stamps;
  const auto subscription = account.subscribe([&stamps](const Stamp& stamp, const Event&) { stamps.push_back(stamp); });
  account.begin_micro_step();
  {
    const PhaseScope backward(account, Phase::backward);
    account.emit([] { return Backward{}; });
  }
  account.end_step();
  account.emit([] { return OptimizerStep{}; });
  ASSERT_EQ(stamps.size(), 2);
  EXPECT_EQ(stamps[0].rank, 3);
  EXPECT_EQ(stamps[0].micro_step, 1);
  EXPECT_EQ(stamps[0].phase, Phase::backward);
  EXPECT_EQ(stamps[1].step, 1);
  EXPECT_EQ(stamps[1].micro_step, 0);
  EXPECT_EQ(stamps[1].phase, Phase::other);
}

TEST(Account, SurvivesSubscriptionsThatOutliveIt) {
  Subscription subscription;
  {
    Account account(0);
    subscription = account.subscribe([](const Stamp&, const Event&) {});
  }
  EXPECT_NO_THROW(subscription = Subscription());
}

TEST(Account, CountsExactlyFromSeveralThreads) {
  Account account(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&account] {
      for (int i = 0; i < 1000; ++i) account.record(kAllReduce, {1, 1, 4});
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(account.traffic().total(), (TrafficCount{4000, 4000, 16000}));
}

TEST(Events, AreOneJsonLineEach) {
  const Collective call{.op = "allreduce",
                        .group = "world",
                        .ranks = {0, 1},
                        .seq = 4,
                        .dtype = "Float",
                        .elements = 2,
                        .bytes = 8,
                        .shapes = {{2}},
                        .reduce_op = "sum",
                        .label = {"fc.weight"}};
  const auto line = nlohmann::json::parse(to_json_line({.rank = 1, .step = 3, .phase = Phase::backward}, call));
  EXPECT_EQ(line.at("v"), 1);
  EXPECT_EQ(line.at("event"), "collective");
  EXPECT_EQ(line.at("phase"), "backward");
  EXPECT_EQ(line.at("label"), nlohmann::json::array({"fc.weight"}));
  EXPECT_FALSE(line.contains("peer"));
}

TEST(Events, AreAppendedToAFile) {
  const auto folder = std::filesystem::temp_directory_path() / "lockstep-events";
  std::filesystem::create_directory(folder);
  Account account(0);
  {
    const auto subscription = write_json_lines(account, folder / "rank0.jsonl");
    account.emit([] { return RunBegin{.world_size = 2, .backend = "gloo"}; });
  }
  std::ifstream file(folder / "rank0.jsonl");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(nlohmann::json::parse(line).at("backend"), "gloo");
  std::filesystem::remove_all(folder);
  EXPECT_THROW(write_json_lines(account, folder / "rank0.jsonl"), FileError);
}

}  // namespace
}  // namespace lockstep::accounting
