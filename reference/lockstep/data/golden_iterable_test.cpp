// What Accelerate 1.15 was recorded to do with streams of which every rank reads all, and with skipped batches.
#include "lockstep/data/data_testing.h"
#include "lockstep/data/golden_records.h"
#include "lockstep/data/iterable_dataset_shard.h"
#include "lockstep/data/prepare_data_loader.h"
#include "lockstep/data/skip_first_batches.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using test::Batches;
using test::compare_all;
using test::Count;
using test::flag;
using test::Indices;

// Accepted outcomes that are stricter than the recording.
bool is_split_of_one(const json& record) {
  return flag(record, "split") && record.at("b") == 1 && record.at("w").get<int>() > 1;
}

TEST(Golden, IterableDatasetShard) {
  int refused = 0;
  int true_lengths = 0;
  compare_all("iterable_dataset_shard", 2232, [&](const json& record) {
    const int world_size = record.at("w");
    for (int rank = 0; rank < world_size; ++rank) {
      const auto make = [&] {
        return IterableDatasetShard(
            std::make_shared<Count>(record.at("n").get<std::int64_t>(), /*sized=*/true),
            {.rank = rank, .size = world_size},
            {.batch_size = record.at("b"), .drop_last = flag(record, "drop"), .split_batches = flag(record, "split")});
      };
      if (record.contains("error") || is_split_of_one(record)) {  // DATA-053, 054
        EXPECT_THROW(make(), InvalidArgument);
        refused += rank == 0 ? 1 : 0;
        continue;
      }
      auto shard = make();
      const auto items = test::drain(shard);
      EXPECT_EQ(items, record.at("ranks")[static_cast<std::size_t>(rank)].get<Indices>());
      EXPECT_EQ(shard.size(), static_cast<std::int64_t>(items.size()));
      const bool overstated = record.at("len") != *shard.size();
      EXPECT_TRUE(!overstated || flag(record, "split"));  // DATA-056
      true_lengths += overstated ? 1 : 0;
    }
  });
  EXPECT_GE(refused, 24);
  EXPECT_GT(true_lengths, 0);
}

void compare_prepared(const json& record, World world) {
  state::GradientState gradient_state;
  const bool sized = flag(record, "sized");
  const DataLoader loader(std::make_shared<Count>(record.at("n").get<std::int64_t>(), sized),
                          {.batch_size = record.at("b").get<std::int64_t>(), .drop_last = flag(record, "drop")});
  const auto prepare = [&] {
    return prepare_data_loader(loader, world, gradient_state, {.split_batches = flag(record, "split")});
  };
  if (record.contains("error")) {
    EXPECT_THROW(static_cast<void>(prepare()), InvalidArgument);
    return;
  }
  const auto prepared = prepare();
  Batches batches;
  for (const auto& batch : *prepared) {
    batches.push_back(test::to_indices(batch));
    EXPECT_EQ(prepared->remainder(), record.at("remainder").get<int>());
  }
  EXPECT_EQ(batches, record.at("ranks")[static_cast<std::size_t>(world.rank)].get<Batches>());
  if (sized) {
    EXPECT_EQ(prepared->length(), static_cast<std::int64_t>(batches.size()));
  } else {
    EXPECT_THROW(static_cast<void>(prepared->length()), TypeError);
  }
}

TEST(Golden, PreparedIterable) {
  compare_all("prepared_iterable", 960, [](const json& record) {
    const int world_size = record.at("w");
    for (int rank = 0; rank < world_size; ++rank) compare_prepared(record, {.rank = rank, .size = world_size});
  });
}

void compare_skipped(const json& record, World world) {
  state::GradientState gradient_state;
  const auto rank = static_cast<std::size_t>(world.rank);
  const std::int64_t n = record.at("n");
  const DataLoader loader(test::Ids{static_cast<std::size_t>(n)},
                          {.batch_size = record.at("b").get<std::int64_t>(), .drop_last = flag(record, "drop")});
  const auto prepared = prepare_data_loader(loader, world, gradient_state);
  const auto skipped = skip_first_batches(*prepared, record.at("skip"));
  Batches batches;
  for (const auto& batch : *skipped) batches.push_back(test::to_indices(batch));
  EXPECT_EQ(batches, record.at("ranks")[rank].get<Batches>());
  const auto& flags = record.at("last_flags")[rank];
  EXPECT_EQ(flags.is_null(), batches.empty());
  if (!batches.empty()) {
    EXPECT_TRUE(skipped->end_of_dataloader());
    // DATA-106, accepted: what the whole loader has, where Accelerate forgets it.
    EXPECT_EQ(skipped->remainder(), flag(record, "drop") ? -1 : n % *prepared->total_batch_size());
  }
  const auto& length = record.at("len")[rank];
  if (length.is_number()) {
    EXPECT_EQ(skipped->length(), length.get<std::int64_t>());
  } else {
    EXPECT_THROW(static_cast<void>(skipped->length()), InvalidArgument);
  }
}

TEST(Golden, SkipFirstBatches) {
  compare_all("skip_first_batches", 72, [](const json& record) {
    const int world_size = record.at("w");
    for (int rank = 0; rank < world_size; ++rank) compare_skipped(record, {.rank = rank, .size = world_size});
  });
}

}  // namespace
}  // namespace lockstep::data
