#include <algorithm>

#include "lockstep/conformance/serve/loader_case.h"
#include "lockstep/conformance/serve/operations.h"
#include "lockstep/data/batch_sampler_shard.h"
#include "lockstep/data/seedable_sampler.h"
#include "lockstep/random/generator.h"

namespace lockstep::conformance {
namespace {

std::shared_ptr<data::BatchSampler> batches_from(Arguments& arguments) {
  const auto size = arguments.optional_integer("n");
  const auto batch_size = arguments.integer("b", 1);
  const bool drop_last = arguments.flag("drop_last", false);
  if (auto listed = listed_batches_from(arguments)) return listed;
  if (!size) arguments.refuse("n", "n, or batches");
  return std::make_shared<data::SamplerBatches>(std::make_shared<data::SequentialSampler>(*size), batch_size,
                                                drop_last);
}

Json pass_over(data::BatchSampler& batches) {
  auto pass = Json::array();
  batches.reset();
  while (const auto batch = batches.next()) pass.push_back(batch->indices);
  return pass;
}

Json describe(data::BatchSamplerShard& shard, std::int64_t num_passes) {
  Json result = {{"len", shard.length()}, {"total_length", shard.total_length()}};
  result["passes"] = Json::array();
  for (std::int64_t pass = 0; pass < num_passes; ++pass) result["passes"].push_back(pass_over(shard));
  return result;
}

/// One pass of `data.seedable_sampler`: an epoch to set first, and after how many indices to leave.
struct SamplerPass {
  std::optional<std::int64_t> epoch, take;
};

std::vector<SamplerPass> passes_from(Arguments& arguments) {
  std::vector<SamplerPass> passes;
  if (!arguments.has("passes")) return {SamplerPass{}};
  for (auto& pass : arguments.objects("passes")) {
    passes.push_back({.epoch = pass.optional_integer("epoch"), .take = pass.optional_integer("take")});
    pass.finish();
  }
  return passes;
}

Indices pass_over(data::SeedableRandomSampler& sampler, const SamplerPass& pass) {
  if (pass.epoch) sampler.set_epoch(*pass.epoch);
  Indices indices;
  sampler.reset();
  while (static_cast<std::int64_t>(indices.size()) != pass.take) {
    const auto index = sampler.next();
    if (!index) break;
    indices.push_back(*index);
  }
  return indices;
}

}  // namespace

Json data_shard(Arguments& arguments, const Case& of) {
  const auto shards = arguments.optional_integer("shards");
  const auto num_passes = arguments.integer("passes", 1);
  const data::ShardOptions options{.split_batches = arguments.flag("split_batches", false),
                                   .even_batches = arguments.flag("even_batches", true)};
  const auto batches = batches_from(arguments);
  arguments.finish();
  const auto shard_of = [&](World world) {
    data::BatchSamplerShard shard(batches, world, options);
    return describe(shard, num_passes);
  };
  if (!shards) return shard_of(of.world());
  auto all = Json::array();
  for (int rank = 0; rank < *shards; ++rank) {
    all.push_back(shard_of({.rank = rank, .size = static_cast<int>(*shards)}));
  }
  return all;
}

Json data_seedable_sampler(Arguments& arguments, const Case& /*of*/) {
  const auto size = arguments.integer("n");
  const auto data_seed = arguments.optional_integer("data_seed");
  data::RandomSamplerOptions options{.replacement = arguments.flag("replacement", false),
                                     .num_samples = arguments.optional_integer("num_samples")};
  if (const auto seed = arguments.optional_integer("generator")) options.generator = random::make_generator(*seed);
  const auto passes = passes_from(arguments);
  arguments.finish();

  data::SeedableRandomSampler sampler(size, data_seed, options);
  auto drawn = Json::array();
  for (const auto& pass : passes) drawn.push_back(pass_over(sampler, pass));
  return {{"passes", std::move(drawn)}, {"epoch", sampler.epoch()}, {"initial_seed", sampler.initial_seed()}};
}

}  // namespace lockstep::conformance
