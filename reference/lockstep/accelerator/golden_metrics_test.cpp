// gather_for_metrics against everything that Accelerate 1.15 was recorded to do: all modes of the section of that name
// in fixtures/golden/data_sharding.json (meanings in gen_data.py).
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

AcceleratorOptions options_of(const json& record) {
  const auto mode = record.at("mode").get<std::string>();
  AcceleratorOptions options{.split_batches = mode == "split"};
  if (mode == "dispatch") options.dispatch_batches = true;
  if (mode == "iterable_shard") options.dispatch_batches = false;
  return options;
}

data::DataLoader loader_of(const json& record) {
  const std::int64_t n = record.at("n");
  const data::DataLoaderOptions options{.batch_size = record.at("b").get<std::int64_t>(),
                                        .drop_last = record.at("drop").get<int>() != 0};
  if (record.at("mode") == "iterable_shard") return data::DataLoader(std::make_shared<data::test::Count>(n), options);
  return data::DataLoader(data::test::Ids{static_cast<std::size_t>(n)}, options);
}

/// What is right where Accelerate fails: without data an empty pass (DATA-089); with fewer rows than ranks one row for
/// each (DATA-085, case A3).
json expected(const json& record, const char* what) {
  if (record.contains("error")) return json::array();
  const auto& recorded_values = record.at(what);
  if (recorded_values != json::array({"uneven"})) return recorded_values;
  const std::string asked = what;
  return asked == "gather" ? json::array({json(std::vector<int>(record.at("w").get<std::size_t>(), 0))})
                           : json::array({json::array({0})});
}

void compare_record(const json& record) {
  SCOPED_TRACE(record.dump());
  Accelerator accelerator(options_of(record));
  const auto loader = accelerator.prepare(loader_of(record));
  json gather = json::array();
  json metrics = json::array();
  json objects = json::array();
  for (const Value& batch : *loader) {
    gather.push_back(list_of(accelerator.gather(batch)));
    metrics.push_back(list_of(accelerator.gather_for_metrics(batch)));
    objects.push_back(list_of_objects(accelerator.gather_for_metrics(as_objects(batch), /*use_gather_object=*/true)));
  }
  EXPECT_EQ(gather, expected(record, "gather"));
  EXPECT_EQ(metrics, expected(record, "gather_for_metrics"));
  EXPECT_EQ(objects, expected(record, "objects"));
}

/// The records that were made on a world of this size, every `stride`-th of them.
std::vector<json> records_of(int world_size, std::size_t stride) {
  std::vector<json> all;
  std::vector<json> chosen;
  for (const auto& record : recorded().at("gather_for_metrics")) {
    if (record.at("w") == world_size) all.push_back(record);
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
  std::cout << "gather_for_metrics: " << compared << " records compared\n";
  EXPECT_EQ(compared, 216U);
}

// Every section is compared: this one here, the others in data/golden_*test.cpp, which fail when they compare fewer
// records than these.
TEST(GoldenMetrics, TheSectionsSumToTheRecordsThatWereMade) {
  const auto& document = recorded();
  std::size_t sum = 0;
  for (const auto& [section, count] : document.at("meta").at("counts").items()) {
    EXPECT_EQ(document.at(section).size(), count.get<std::size_t>()) << section;
    sum += document.at(section).size();
  }
  std::cout << "data: " << sum << " records in " << document.at("meta").at("counts").size() << " sections\n";
  EXPECT_EQ(sum, 13088U);
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
