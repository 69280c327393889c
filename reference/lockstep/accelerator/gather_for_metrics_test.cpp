// gather_for_metrics: all that the ranks computed, without the samples that only fill up the last batch.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using data::test::Batches;
using data::test::Ids;
using data::test::Indices;
using data::test::to_indices;
using test::run_thread_ranks;

data::DataLoader ids(std::size_t n, std::int64_t batch_size) {
  return data::DataLoader(Ids{n}, {.batch_size = batch_size});
}

// What every rank gets, step by step.
Batches metrics_of(Accelerator& accelerator, std::size_t n, std::int64_t batch_size) {
  Batches all;
  const auto loader = accelerator.prepare(ids(n, batch_size));
  for (const Value& batch : *loader) all.push_back(to_indices(accelerator.gather_for_metrics(batch)));
  return all;
}

TEST(OPS_030, TheLastStepIsCutToTheRealSamples) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    EXPECT_EQ(metrics_of(accelerator, 5, 2), (Batches{{0, 1, 2, 3}, {4}}));
    EXPECT_EQ(metrics_of(accelerator, 8, 2), (Batches{{0, 1, 2, 3}, {4, 5, 6, 7}}));  // remainder 0: all are real
  });
}

TEST(OPS_030, AnUnknownRemainderCutsNothing) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(data::DataLoader(Ids{7}, {.batch_size = 2, .drop_last = true}));
    for (const Value& batch : *loader) {
      EXPECT_EQ(accelerator.gradient_state().remainder(), -1);
      EXPECT_EQ(to_indices(accelerator.gather_for_metrics(batch)), (Indices{0, 1, 2, 3}));
    }
  });
}

TEST(OPS_031, NestedValuesAreCutLeafByLeaf) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(5, 2));
    Value last;
    for (const Value& batch : *loader) {
      last = accelerator.gather_for_metrics(
          Value::dict({{"id", batch}, {"more", Value::tuple({batch.tensor().unsqueeze(1) * 10})}}));
    }
    EXPECT_EQ(to_indices(last["id"]), (Indices{4}));
    EXPECT_EQ(to_indices(last["more"][0]), (Indices{40}));
    EXPECT_EQ(last["more"][0].tensor().sizes().vec(), (std::vector<std::int64_t>{1, 1}));
  });
}

TEST(OPS_031, ObjectsAreGatheredAndTheirFlatListIsCut) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(5, 2));
    std::vector<Value> words;
    std::vector<Value> forced;
    for (const Value& batch : *loader) {
      std::vector<Value> names;
      for (const auto index : to_indices(batch)) names.emplace_back("s" + std::to_string(index));
      words.push_back(accelerator.gather_for_metrics(Value::list(names)));
      // Tensors as objects: a list of two on each rank, of which the last step keeps one in all.
      forced.push_back(accelerator.gather_for_metrics(Value::list({batch, batch}), /*use_gather_object=*/true));
    }
    EXPECT_EQ(words, (std::vector<Value>{Value::list({"s0", "s1", "s2", "s3"}), Value::list({"s4"})}));
    EXPECT_EQ(forced[0].size(), 4U);
    ASSERT_EQ(forced[1].size(), 1U);
    EXPECT_EQ(to_indices(forced[1][0]).size(), 2U);
  });
}

TEST(OPS_032, OneScalarPerRankIsCutAsWell) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(5, 2));
    std::vector<Value> means;
    for (const Value& batch : *loader)
      means.push_back(accelerator.gather_for_metrics(batch.tensor().to(at::kFloat).mean()));
    EXPECT_TRUE(means[0].tensor().equal(at::tensor({0.5F, 2.5F})));
    EXPECT_TRUE(means[1].tensor().equal(at::tensor({2.0F})));  // [4, 0], whose mean is 2, of rank 0 alone
  });
}

TEST(OPS_032, ASingleProcessGetsItsScalarBack) {
  state::as_rank({{"ACCELERATE_USE_CPU", "1"}}, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(5, 4));
    for (const Value& batch : *loader) {
      const auto mean = batch.tensor().to(at::kFloat).mean();
      EXPECT_TRUE(accelerator.gather_for_metrics(mean).tensor().is_same(mean));
    }
  });
}

TEST(OPS_033, ASingleProcessCutsToo) {
  state::as_rank({{"ACCELERATE_USE_CPU", "1"}}, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(5, 4));
    std::vector<Value> all;
    for (const Value& batch : *loader) {
      static_cast<void>(batch);
      all.push_back(accelerator.gather_for_metrics(Value::list({"a", "b", "c"})));
    }
    EXPECT_EQ(all, (std::vector<Value>{Value::list({"a", "b", "c"}), Value::list({"a"})}));
  });
}

TEST(OPS_034, OutsideTheLastStepNothingIsCut) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(5, 2));
    const auto rows = at::full({2}, accelerator.process_index(), at::kLong);
    EXPECT_EQ(to_indices(accelerator.gather_for_metrics(rows)), (Indices{0, 0, 1, 1}));
    for (const Value& batch : *loader) static_cast<void>(batch);
    EXPECT_EQ(to_indices(accelerator.gather_for_metrics(rows)), (Indices{0, 0, 1, 1}));  // after the loop
    for (const Value& batch : *loader) {
      static_cast<void>(batch);
      break;
    }
    EXPECT_EQ(to_indices(accelerator.gather_for_metrics(rows)), (Indices{0, 0, 1, 1}));  // after leaving it early
  });
}

TEST(OPS_035, WhatCannotBeCutIsReturnedWhole) {
  state::as_rank({{"ACCELERATE_USE_CPU", "1"}}, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(5, 4));
    for (const Value& batch : *loader) {
      const auto mixed = Value::dict({{"rows", batch}, {"mean", at::scalar_tensor(1.0)}});
      EXPECT_EQ(accelerator.gather_for_metrics(mixed), mixed);
      EXPECT_EQ(accelerator.gather_for_metrics("text"), Value("text"));
    }
  });
}

TEST(OPS_036, ARankWithoutObjectsGoesWithThoseThatHaveSome) {
  run_thread_ranks(3, [] {
    const Accelerator accelerator;
    const bool has_any = accelerator.process_index() != 1;
    const auto mine =
        has_any ? Value::list({"of rank " + std::to_string(accelerator.process_index())}) : Value::list({});
    EXPECT_EQ(accelerator.gather_for_metrics(mine), Value::list({"of rank 0", "of rank 2"}));
  });
}

TEST(OPS_036, ContainersWithoutLeavesComeBackAsTheyAre) {
  run_thread_ranks(2, [] {
    const Accelerator accelerator;
    EXPECT_EQ(accelerator.gather_for_metrics(Value::dict({})), Value::dict({}));
    EXPECT_EQ(accelerator.gather_for_metrics(Value::list({})), Value::list({}));
  });
}

TEST(OPS_037, ObjectsAndUseGatherObjectAreTaken) {
  run_thread_ranks(2, [] {
    const Accelerator accelerator;
    const int rank = accelerator.process_index();
    EXPECT_EQ(accelerator.gather_for_metrics(Value::list({rank, "x"})), Value::list({0, "x", 1, "x"}));
    const auto tensors =
        accelerator.gather_for_metrics(Value::list({at::full({rank + 1}, rank)}), /*use_gather_object=*/true);
    EXPECT_EQ(tensors[1].tensor().size(0), 2);
  });
}

Indices numbers_below(std::size_t n) {
  Indices numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Indices joined(const Batches& batches) {
  Indices all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

TEST(CaseB1, AnEvenSetKeepsItsLastBatch) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    EXPECT_EQ(joined(metrics_of(accelerator, 64, 8)), numbers_below(64));
    EXPECT_EQ(joined(metrics_of(accelerator, 512, 16)), numbers_below(512));
  });
}

TEST(CaseB3, SmallTailsAreCountedOnceAndInOrder) {
  for (const int world : {2, 3, 4}) {
    run_thread_ranks(world, [] {
      Accelerator accelerator;
      for (const std::size_t n : {1, 3, 5, 9, 10, 17, 97, 99}) {
        for (const std::int64_t batch_size : {2, 4, 5, 8}) {
          EXPECT_EQ(joined(metrics_of(accelerator, n, batch_size)), numbers_below(n))
              << "n " << n << ", batch " << batch_size;
        }
      }
    });
  }
}

TEST(CaseA5, WithoutEvenBatchesNothingWrapsAround) {
  const std::map<int, std::vector<Batches>> right = {
      {2, {{{0, 1, 2, 3}, {8, 9}}, {{4, 5, 6, 7}}}},
      {3, {{{0, 1, 2, 3}}, {{4, 5, 6, 7}}, {{8, 9}}}},
  };
  for (const auto& [world, per_rank] : right) {
    run_thread_ranks(world, [&per_rank = per_rank] {
      Accelerator accelerator({.even_batches = false});
      const auto loader = accelerator.prepare(ids(10, 4));
      EXPECT_EQ(data::test::drain_loader(*loader), per_rank[static_cast<std::size_t>(accelerator.process_index())]);
    });
  }
}

}  // namespace
}  // namespace lockstep
