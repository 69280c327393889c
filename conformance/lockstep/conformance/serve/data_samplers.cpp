#include <algorithm>
#include <functional>

#include "lockstep/conformance/serve/answers.h"
#include "lockstep/conformance/serve/loader_case.h"
#include "lockstep/conformance/serve/operations.h"
#include "lockstep/data/batch_sampler_shard.h"
#include "lockstep/data/iterable_dataset_shard.h"
#include "lockstep/data/seedable_sampler.h"
#include "lockstep/random/generator.h"

namespace lockstep::conformance {
namespace {

std::shared_ptr<data::BatchSampler> batches_from(Arguments& arguments) {
  const bool has_length = arguments.optional_integer("n").has_value();
  const auto batch_size = arguments.integer("b", 1);
  const bool drop_last = arguments.flag("drop_last", false);
  if (auto listed = listed_batches_from(arguments)) return listed;
  if (!has_length) arguments.refuse("n", "n, or batches");
  return std::make_shared<data::SamplerBatches>(std::make_shared<data::SequentialSampler>(arguments.length("n")),
                                                batch_size, drop_last);
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

/// What `data.iterable_shard` asks of each shard.
struct StreamShardPlan {
  StreamOptions stream;
  data::IterableShardOptions shard;
  std::vector<std::optional<std::int64_t>> epochs;  // one pass for each; none: no set_epoch before it
};

std::vector<std::optional<std::int64_t>> epochs_from(Arguments& arguments) {
  if (!arguments.has("epochs")) return {std::nullopt};
  std::vector<std::optional<std::int64_t>> epochs;
  for (const auto& epoch : arguments.json("epochs")) {
    if (!epoch.is_null() && !epoch.is_number_integer()) arguments.refuse("epochs", "integers, or null");
    epochs.push_back(epoch.is_null() ? std::nullopt : std::optional(epoch.get<std::int64_t>()));
  }
  return epochs;
}

Json length_of(const data::IterableDatasetShard& shard) {
  if (const auto size = shard.size()) return *size;
  throw TypeError({.where = "len", .expected = "a data set that knows its size", .got = "one that does not"});
}

Json pass_over(data::IterableDatasetShard& shard, std::optional<std::int64_t> epoch) {
  if (epoch) shard.set_epoch(*epoch);
  auto items = Json::array();
  shard.reset();
  while (const auto item = shard.next()) items.push_back(item->tensor().item<std::int64_t>());
  return items;
}

Json describe(const StreamShardPlan& plan, World world) {
  const auto record = std::make_shared<DatasetRecord>();
  Arguments ids(Json::object(), "items");
  data::IterableDatasetShard shard(make_stream(Items(ids), plan.stream, record), world, plan.shard);
  Json result = {{"len", attempt([&] { return length_of(shard); })}, {"passes", Json::array()}};
  for (const auto& epoch : plan.epochs) result["passes"].push_back(attempt([&] { return pass_over(shard, epoch); }));
  if (plan.stream.logs_epochs) result["epochs_seen"] = record->epochs_seen;
  return result;
}

/// This rank's shard, or with `shards` all of them.
Json of_shards(std::optional<std::int64_t> shards, World world, const std::function<Json(World)>& shard_of) {
  if (!shards) return shard_of(world);
  auto all = Json::array();
  for (int rank = 0; rank < *shards; ++rank) {
    all.push_back(shard_of({.rank = rank, .size = static_cast<int>(*shards)}));
  }
  return all;
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
  return of_shards(shards, of.world(), shard_of);
}

Json data_iterable_shard(Arguments& arguments, const Case& of) {
  const auto shards = arguments.optional_integer("shards");
  StreamShardPlan plan;
  plan.stream = {.size = arguments.length("n"),
                 .is_sized = arguments.flag("sized", true),
                 .logs_epochs = arguments.flag("epoch_log", false),
                 .generator_seed = arguments.optional_integer("dataset_generator")};
  plan.shard = {.batch_size = arguments.integer("b", 1),
                .drop_last = arguments.flag("drop_last", false),
                .split_batches = arguments.flag("split_batches", false)};
  plan.epochs = epochs_from(arguments);
  arguments.finish();
  return of_shards(shards, of.world(), [&](World world) { return describe(plan, world); });
}

Json data_seedable_sampler(Arguments& arguments, const Case& /*of*/) {
  const auto size = arguments.length("n");
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
