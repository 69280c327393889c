#include "lockstep/state/partial_state.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <iostream>
#include <mutex>
#include <sstream>

#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep::state {
namespace {

using test::run_thread_ranks;

// What ranks saw, by rank.
template <typename T>
class PerRank {
 public:
  void set(int rank, T value) {
    const std::lock_guard lock(mutex_);
    values_[rank] = std::move(value);
  }
  [[nodiscard]] const T& operator[](int rank) const { return values_.at(rank); }

 private:
  std::mutex mutex_;
  std::map<int, T> values_;
};

Value list_of_numbers(int length) {
  std::vector<Value> items;
  for (int i = 0; i < length; ++i) items.emplace_back(i);
  return Value::list(std::move(items));
}

TEST(STATE_101, EveryConstructionOnARankSharesOneState) {
  run_thread_ranks(2, [] {
    const PartialState first;
    const PartialState second({.backend = "nonsense", .timeout = std::chrono::milliseconds(1)});  // ignored
    EXPECT_EQ(second.process_index(), first.process_index());
    EXPECT_EQ(&second.world_group(), &first.world_group());
    EXPECT_EQ(second.world_group().timeout(), std::chrono::seconds(60));
    EXPECT_EQ(&first.rank(), &RankContext::current());
    EXPECT_EQ(&first.rank().gradient_state(), &second.rank().gradient_state());
  });
}

TEST(STATE_101, RanksOfOneProcessShareNothing) {
  PerRank<const RankContext*> ranks;
  run_thread_ranks(2, [&ranks] {
    const PartialState state;
    state.rank().gradient_state().num_steps = state.process_index() + 5;
    state.wait_for_everyone();
    EXPECT_EQ(PartialState().rank().gradient_state().num_steps, state.process_index() + 5);
    ranks.set(state.process_index(), &state.rank());
    state.wait_for_everyone();
  });
  EXPECT_NE(ranks[0], ranks[1]);
}

TEST(STATE_102, AttributesOfADistributedRank) {
  run_thread_ranks(3, [] {
    const PartialState state;
    const int rank = state.process_index();
    EXPECT_EQ(state.num_processes(), 3);
    EXPECT_EQ(state.world_group().rank(), rank);
    EXPECT_EQ(state.local_process_index(), rank);
    EXPECT_EQ(state.is_main_process(), rank == 0);
    EXPECT_EQ(state.is_local_main_process(), rank == 0);
    EXPECT_EQ(state.is_last_process(), rank == 2);
    EXPECT_TRUE(state.use_distributed());
    EXPECT_EQ(state.distributed_type(), DistributedType::multi_cpu);
    EXPECT_EQ(state.backend(), "threads");
    EXPECT_EQ(state.device(), at::Device("cpu:0"));
    EXPECT_FALSE(state.debug());
    EXPECT_FALSE(state.fork_launched());
    EXPECT_TRUE(state.initialized());
  });
}

TEST(STATE_102, AttributesWithoutAGroup) {
  as_rank({{"ACCELERATE_USE_CPU", "1"}, {"ACCELERATE_DEBUG_MODE", "true"}, {"FORK_LAUNCHED", "1"}}, [] {
    const PartialState state;
    EXPECT_EQ(state.num_processes(), 1);
    EXPECT_EQ(state.process_index(), 0);
    EXPECT_EQ(state.local_process_index(), 0);
    EXPECT_TRUE(state.is_main_process());
    EXPECT_TRUE(state.is_local_main_process());
    EXPECT_TRUE(state.is_last_process());
    EXPECT_FALSE(state.use_distributed());
    EXPECT_EQ(state.distributed_type(), DistributedType::no);
    EXPECT_EQ(state.backend(), std::nullopt);
    EXPECT_FALSE(state.world_group());
    EXPECT_TRUE(state.debug());
    EXPECT_TRUE(state.fork_launched());
  });
}

TEST(STATE_102, AWorldOfOneIsNotUsedDistributed) {
  run_thread_ranks(1, [] {
    const PartialState state;
    EXPECT_EQ(state.distributed_type(), DistributedType::multi_cpu);
    EXPECT_FALSE(state.use_distributed());
    EXPECT_EQ(state.backend(), "threads");
  });
}

TEST(STATE_105, TheDeviceIsTheOneAskedForOrTheCpu) {
  as_rank({{"ACCELERATE_TORCH_DEVICE", "meta"}}, [] { EXPECT_EQ(PartialState().device(), at::Device(at::kMeta)); });
  as_rank({{"ACCELERATE_TORCH_DEVICE", "cpu:0"}}, [] { EXPECT_EQ(PartialState().device(), at::Device("cpu:0")); });
  as_rank({}, [] { EXPECT_EQ(PartialState({.cpu = true}).device(), at::Device(at::kCPU)); });
}

TEST(STATE_008, WithoutADistributedJobAnUnforcedDeviceIsTheDefaultOne) {
  const auto expected = at::hasCUDA() ? at::kCUDA : at::kCPU;
  as_rank({}, [expected] { EXPECT_EQ(PartialState().device().type(), expected); });
}

TEST(STATE_112, AResetStateNamesTheResetAndCanBeMadeAgain) {
  as_rank({{"ACCELERATE_USE_CPU", "1"}}, [] {
    const PartialState state;
    PartialState::reset();
    EXPECT_FALSE(state.initialized());
    const auto text = test::message_of<AttributeError>([&state] { static_cast<void>(state.device()); });
    EXPECT_NE(text.find("PartialState.device"), std::string::npos) << text;
    EXPECT_NE(text.find("reset"), std::string::npos) << text;
    EXPECT_THROW(static_cast<void>(state.num_processes()), AttributeError);
    EXPECT_THROW(static_cast<void>(state.debug()), AttributeError);
    EXPECT_EQ(PartialState().num_processes(), 1);
    EXPECT_EQ(state.num_processes(), 1);  // the old handle is one of the new state
  });
}

TEST(STATE_112, TheGroupOutlivesAReset) {
  run_thread_ranks(3, [] {
    const auto group = PartialState().world_group();
    PartialState::reset();
    auto sum = at::ones({1});
    group.all_reduce(sum).wait();
    EXPECT_EQ(sum.item<double>(), 3);
    const PartialState again;  // the ranks meet anew, or still know each other
    EXPECT_EQ(again.num_processes(), 3);
    again.world_group().all_reduce(sum).wait();
    EXPECT_EQ(sum.item<double>(), 9);
  });
}

TEST(STATE_114, DestroyingTheGroupIsANoOpOnlyForForkedRanks) {
  run_thread_ranks(2, [] {
    PartialState state;
    state.wait_for_everyone();
    state.destroy_process_group();
    EXPECT_EQ(state.backend(), std::nullopt);
  });
  const ProcessVariable forked("FORK_LAUNCHED", "1");
  run_thread_ranks(2, [] {
    PartialState state;
    state.destroy_process_group();
    EXPECT_EQ(state.backend(), "threads");
    state.wait_for_everyone();
  });
}

TEST(STATE_115, TheTextIsFiveLines) {
  as_rank({{"ACCELERATE_USE_CPU", "1"}}, [] {
    EXPECT_EQ(PartialState().to_text(),
              "Distributed environment: NO\nNum processes: 1\nProcess index: 0\nLocal process index: 0\nDevice: cpu\n");
  });
  run_thread_ranks(2, [] {
    const PartialState state;
    const auto rank = std::to_string(state.process_index());
    EXPECT_EQ(state.to_text(),
              "Distributed environment: MULTI_CPU  Backend: threads\nNum processes: 2\nProcess index: " + rank +
                  "\nLocal process index: " + rank + "\nDevice: cpu:0\n");
  });
}

TEST(STATE_134, PrintsOnTheLocalMainProcessOnly) {
  std::ostringstream output;
  auto* const before = std::cout.rdbuf(output.rdbuf());
  run_thread_ranks(3, [] {
    const PartialState state;
    state.print("from rank " + std::to_string(state.process_index()));
  });
  std::cout.rdbuf(before);
  EXPECT_EQ(output.str(), "from rank 0\n");
}

TEST(STATE_135, EachRankGetsItsShareOfListsTuplesAndTensors) {
  run_thread_ranks(3, [] {
    const PartialState state;
    const auto rank = static_cast<std::size_t>(state.process_index());
    const auto four = list_of_numbers(4);
    const std::vector<std::vector<Value>> of_four = {{0, 1}, {2}, {3}};
    EXPECT_EQ(state.split_between_processes(four), Value::list(of_four[rank]));
    EXPECT_EQ(state.split_between_processes(Value::tuple(four.items())), Value::tuple(of_four[rank]));
    const std::vector<std::vector<Value>> of_one = {{0}, {}, {}};
    EXPECT_EQ(state.split_between_processes(list_of_numbers(1)), Value::list(of_one[rank]));
    const auto rows = state.split_between_processes(at::arange(4)).tensor();
    EXPECT_TRUE(rows.equal(at::arange(4).slice(0, rank == 0 ? 0 : rank + 1, rank + 2)));
  });
}

TEST(STATE_136, SharesOfListsArePaddedWithTheLastElementOfTheWhole) {
  run_thread_ranks(3, [] {
    const PartialState state;
    const auto rank = static_cast<std::size_t>(state.process_index());
    const std::vector<std::vector<Value>> of_seven = {{0, 1, 2}, {3, 4, 6}, {5, 6, 6}};
    EXPECT_EQ(state.split_between_processes(list_of_numbers(7), true), Value::list(of_seven[rank]));
    EXPECT_EQ(state.split_between_processes(list_of_numbers(1), true), Value::list({0}));
    EXPECT_THROW(static_cast<void>(state.split_between_processes(list_of_numbers(0), true)), OutOfRange);
  });
}

TEST(STATE_137, PaddedSharesOfTensorsAreOnTheDevice) {
  run_thread_ranks(3, [] {
    const PartialState state;
    const auto rank = static_cast<std::size_t>(state.process_index());
    const std::vector<std::vector<std::int64_t>> of_seven = {{0, 1, 2}, {3, 4, 6}, {5, 6, 6}};
    EXPECT_TRUE(state.split_between_processes(at::arange(7), true).tensor().equal(at::tensor(of_seven[rank])));
  });
  const ProcessVariable device("ACCELERATE_TORCH_DEVICE", "meta");
  run_thread_ranks(2, [] {
    const PartialState state;
    EXPECT_TRUE(state.split_between_processes(at::arange(4), true).tensor().is_meta());
    EXPECT_TRUE(state.split_between_processes(Value::dict({{"x", at::arange(3)}}), true)["x"].tensor().is_meta());
    EXPECT_FALSE(state.split_between_processes(at::arange(4)).tensor().is_meta());
    const auto list = Value::list({at::ones({1}), at::ones({1})});  // elements of a list are not touched
    EXPECT_FALSE(state.split_between_processes(list, true)[0].tensor().is_meta());
  });
}

TEST(STATE_138, TuplesArePaddedToo) {
  run_thread_ranks(2, [] {
    const PartialState state;
    const auto share = state.split_between_processes(Value::tuple({1, 2, 3}), true);
    EXPECT_EQ(share, state.is_main_process() ? Value::tuple({1, 2}) : Value::tuple({3, 3}));
  });
}

TEST(STATE_139, EveryValueOfADictIsSplitAlikeIntoANewOne) {
  run_thread_ranks(2, [] {
    const PartialState state;
    const auto inputs = Value::dict({{"x", Value::list({1, 2, 3})}, {"name", "abc"}, {"t", at::arange(3)}});
    const auto share = state.split_between_processes(inputs);
    EXPECT_EQ(share["x"], state.is_main_process() ? Value::list({1, 2}) : Value::list({3}));
    EXPECT_EQ(share["name"], Value("abc"));  // cannot be split
    EXPECT_EQ(share["t"].tensor().size(0), state.is_main_process() ? 2 : 1);
    EXPECT_EQ(inputs["x"].size(), 3U);
    EXPECT_THROW(static_cast<void>(
                     state.split_between_processes(Value::dict({{"x", Value::list({1})}, {"y", Value::list({1, 2})}}))),
                 InvalidArgument);
    EXPECT_THROW(static_cast<void>(state.split_between_processes(Value::dict({}))), OutOfRange);
  });
}

TEST(STATE_140, OneProcessGetsTheVeryInputAndStringsPassWhole) {
  as_rank({{"ACCELERATE_USE_CPU", "1"}}, [] {
    const PartialState state;
    const auto tensor = at::ones({3});
    EXPECT_TRUE(state.split_between_processes(tensor, true).tensor().is_same(tensor));
    EXPECT_EQ(state.split_between_processes(7, true), Value(7));
  });
  run_thread_ranks(2, [] {
    const PartialState state;
    EXPECT_EQ(state.split_between_processes("text"), Value("text"));
    EXPECT_THROW(static_cast<void>(state.split_between_processes(7)), TypeError);
  });
}

}  // namespace
}  // namespace lockstep::state
