// How fast a rank deals itself its batches: a pass of BatchSamplerShard over 1,000,000 indices in batches of 32 on 4
// ranks. Items are *global* indices: a rank goes through all of them, and keeps every fourth batch. Shuffled passes
// draw a new permutation each. Wall time by Google Benchmark.
#include <benchmark/benchmark.h>

#include <memory>

#include "lockstep/data/batch_sampler_shard.h"
#include "lockstep/random/generator.h"

namespace {

using namespace lockstep;

constexpr std::int64_t kNumIndices = 1'000'000;
constexpr std::int64_t kBatchSize = 32;
constexpr World kWorld{.rank = 1, .size = 4};

void run_passes(benchmark::State& state, std::shared_ptr<data::Sampler> order) {
  data::BatchSamplerShard shard(std::make_shared<data::SamplerBatches>(std::move(order), kBatchSize), kWorld);
  for (auto _ : state) {
    std::int64_t seen = 0;
    shard.reset();
    while (const auto batch = shard.next()) {
      benchmark::DoNotOptimize(batch->indices.data());
      seen += batch->size();
    }
    if (seen < kNumIndices / kWorld.size) state.SkipWithError("a rank did not get its share");
  }
  state.SetItemsProcessed(state.iterations() * kNumIndices);
}

void ShardInOrder(benchmark::State& state) {
  run_passes(state, std::make_shared<data::SequentialSampler>(kNumIndices));
}
BENCHMARK(ShardInOrder)->Unit(benchmark::kMillisecond);

void ShardShuffled(benchmark::State& state) {
  run_passes(state, std::make_shared<data::RandomSampler>(
                        kNumIndices, data::RandomSamplerOptions{.generator = random::make_generator(0)}));
}
BENCHMARK(ShardShuffled)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
