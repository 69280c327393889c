// gather_for_metrics against everything that Accelerate 1.15 was recorded to do with map-style datasets, in the modes
// "shard" and "split" of fixtures/golden/data_sharding.json (meanings in gen_data.py).
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/data/data_testing.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using nlohmann::json;

const json& recorded() {
  static const json document = [] {
    std::ifstream file(LOCKSTEP_FIXTURES "/golden/data_sharding.json");
    return json::parse(file);
  }();
  return document;
}

json list_of(const Value& value) { return json(data::test::to_indices(value)); }

json list_of_objects(const Value& list) {
  json numbers = json::array();
  for (const auto& item : list.items()) numbers.push_back(item.integer());
  return numbers;
}

Value as_objects(const Value& batch) {
  std::vector<Value> numbers;
  for (const auto index : data::test::to_indices(batch)) numbers.emplace_back(index);
  return Value::list(std::move(numbers));
}

void compare_record(const json& record) {
  SCOPED_TRACE(record.dump());
  Accelerator accelerator({.split_batches = record.at("mode") == "split"});
  const auto loader = accelerator.prepare(data::DataLoader(
      data::test::Ids{record.at("n")},
      {.batch_size = record.at("b").get<std::int64_t>(), .drop_last = record.at("drop").get<int>() != 0}));
  json gather = json::array();
  json metrics = json::array();
  json objects = json::array();
  for (const Value& batch : *loader) {
    gather.push_back(list_of(accelerator.gather(batch)));
    metrics.push_back(list_of(accelerator.gather_for_metrics(batch)));
    objects.push_back(list_of_objects(accelerator.gather_for_metrics(as_objects(batch), /*use_gather_object=*/true)));
  }
  EXPECT_EQ(gather, record.at("gather"));
  EXPECT_EQ(metrics, record.at("gather_for_metrics"));
  EXPECT_EQ(objects, record.at("objects"));
}

/// The records that were made on a world of this size, every `stride`-th of them.
std::vector<json> records_of(int world_size, std::size_t stride) {
  std::vector<json> all;
  std::vector<json> chosen;
  for (const auto& record : recorded().at("gather_for_metrics")) {
    const auto mode = record.at("mode").get<std::string>();
    if ((mode == "shard" || mode == "split") && record.at("w") == world_size) all.push_back(record);
  }
  for (std::size_t i = 0; i < all.size(); i += stride) chosen.push_back(all[i]);
  return chosen;
}

TEST(GoldenMetrics, EveryRecordAmongThreadRanks) {
  std::size_t compared = 0;
  for (const int world_size : {2, 3}) {
    const auto records = records_of(world_size, 1);
    std::atomic<std::size_t> on_all_ranks{0};
    test::run_thread_ranks(world_size, [&] {
      for (const auto& record : records) {
        compare_record(record);
        ++on_all_ranks;
      }
    });
    EXPECT_EQ(on_all_ranks, records.size() * static_cast<std::size_t>(world_size));
    compared += on_all_ranks / static_cast<std::size_t>(world_size);
  }
  std::cout << "gather_for_metrics (shard, split): " << compared << " records compared\n";
  EXPECT_GE(compared, 108U);
}

// The five sections that data sharding rests on; the first four are compared in data/golden_test.cpp, which fails when
// it compares fewer than these.
TEST(GoldenMetrics, TheSectionsSumToTheRecordsAskedFor) {
  const auto& document = recorded();
  std::size_t sum = records_of(2, 1).size() + records_of(3, 1).size();
  for (const char* section :
       {"batch_sampler_shard", "batch_sampler_shard_errors", "prepared_map", "seedable_sampler"}) {
    sum += document.at(section).size();
  }
  std::cout << "data sharding: " << sum << " records in five sections\n";
  EXPECT_EQ(sum, 7848U);
}

TEST(GoldenMetrics, ASampleOfTheRecordsBetweenProcesses) {
  const auto records = records_of(2, 7);
  ASSERT_GE(records.size(), 10U);
  test::run_ranks(2, [&records] {
    for (const auto& record : records) compare_record(record);
  });
}

}  // namespace
}  // namespace lockstep
