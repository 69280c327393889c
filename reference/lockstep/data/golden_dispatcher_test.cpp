// Every record of what Accelerate 1.15 did with dispatched batches in real process groups.
#include <atomic>
#include <map>

#include "lockstep/data/data_loader_dispatcher.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/data/golden_records.h"
#include "lockstep/state/partial_state.h"
#include "run_ranks.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using test::Batches;
using test::flag;

/// How our outcome stands to the recorded one.
enum class Outcome { same, refused, empty_pass, repeated };

bool has_empty_batch(const json& record) {
  for (const auto& batches : record.at("ranks")) {
    for (const auto& batch : batches) {
      if (batch.empty()) return true;
    }
  }
  return false;
}

Outcome expected_outcome(const json& record) {
  const int world_size = record.at("w");
  if (flag(record, "split") && record.at("b").get<int>() % world_size != 0) return Outcome::refused;  // DATA-090
  if (record.contains("error")) return Outcome::empty_pass;                                           // DATA-089
  return has_empty_batch(record) ? Outcome::repeated : Outcome::same;                                 // DATA-085
}

DataLoader recorded_loader(const json& record) {
  const std::int64_t n = record.at("n");
  const DataLoaderOptions options{.batch_size = record.at("b").get<std::int64_t>(), .drop_last = flag(record, "drop")};
  if (record.at("kind") == "map") return DataLoader(test::Ids{static_cast<std::size_t>(n)}, options);
  return DataLoader(std::make_shared<test::Count>(n), options);
}

// Fewer rows than ranks are repeated until each has one (DATA-085).
test::Indices rows_of_too_few(std::int64_t num_rows, std::int64_t world_size, std::int64_t rank) {
  const auto per_rank = (num_rows + world_size - 1) / world_size;
  test::Indices rows;
  for (auto row = rank * per_rank; row < (rank + 1) * per_rank; ++row) rows.push_back(row % num_rows);
  return rows;
}

Outcome compare_on_rank(const json& record) {
  SCOPED_TRACE(record.dump());
  const state::PartialState process;
  const auto rank = static_cast<std::size_t>(process.process_index());
  state::GradientState gradient_state;
  const auto outcome = expected_outcome(record);
  const auto make = [&] {
    return std::make_shared<DataLoaderDispatcher>(recorded_loader(record), process.world_group(), gradient_state,
                                                  DataLoaderDispatcherOptions{.split_batches = flag(record, "split")});
  };
  if (outcome == Outcome::refused) {
    EXPECT_THROW(make(), InvalidArgument);
    return outcome;
  }
  const auto loader = make();
  Batches batches;
  json flags = json::array();
  for (const auto& batch : *loader) {
    batches.push_back(test::to_indices(batch));
    flags.push_back({loader->end_of_dataloader() ? 1 : 0, loader->remainder()});
  }
  if (outcome == Outcome::empty_pass) {
    EXPECT_TRUE(batches.empty());
    return outcome;
  }
  EXPECT_EQ(flags, record.at("flags"));
  if (outcome == Outcome::repeated) {
    EXPECT_EQ(batches, Batches{rows_of_too_few(record.at("n"), process.num_processes(), process.process_index())});
  } else {
    EXPECT_EQ(batches, record.at("ranks")[rank].get<Batches>());
  }
  if (record.at("len").is_number()) EXPECT_EQ(loader->length(), record.at("len").get<std::int64_t>());
  return outcome;
}

TEST(Golden, Dispatcher) {
  std::map<int, std::vector<json>> by_world;
  for (const auto& record : test::golden().at("dispatcher")) by_world[record.at("w").get<int>()].push_back(record);
  std::map<Outcome, int> outcomes;
  int compared = 0;
  for (const auto& [world_size, records] : by_world) {
    lockstep::test::run_thread_ranks(world_size, [&, &records = records] {
      for (const auto& record : records) {
        const auto outcome = compare_on_rank(record);
        if (state::PartialState().process_index() != 0) continue;
        ++outcomes[outcome];
        ++compared;
      }
    });
  }
  std::cout << "dispatcher: " << compared << " records compared, of which " << outcomes[Outcome::empty_pass]
            << " are empty passes, " << outcomes[Outcome::refused] << " refused, " << outcomes[Outcome::repeated]
            << " filled for every rank\n";
  EXPECT_EQ(compared, 1804);
  EXPECT_GT(outcomes[Outcome::same], 1100);
}

}  // namespace
}  // namespace lockstep::data
