#include "lockstep/conformance/serve/loader_case.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "lockstep/data/dataset.h"
#include "lockstep/data/sampler.h"
#include "lockstep/random/generator.h"

namespace lockstep::conformance {
namespace {

/// Items 0 ... n-1.
class CountedDataset final : public data::Dataset {
 public:
  CountedDataset(Items items, std::int64_t size, bool logs_epochs, std::shared_ptr<DatasetRecord> record)
      : items_(std::move(items)), size_(size), logs_epochs_(logs_epochs), record_(std::move(record)) {}

  Value get(std::int64_t index) override {
    ++record_->reads;
    return items_.item(index);
  }
  [[nodiscard]] std::int64_t size() const override { return size_; }
  void set_epoch(std::int64_t epoch) override {
    if (logs_epochs_) record_->epochs_seen.push_back(epoch);
  }

 private:
  Items items_;
  std::int64_t size_;
  bool logs_epochs_;
  std::shared_ptr<DatasetRecord> record_;
};

class CountedStream final : public data::IterableDataset {
 public:
  CountedStream(Items items, const StreamOptions& options, std::shared_ptr<DatasetRecord> record)
      : items_(std::move(items)), options_(options), record_(std::move(record)) {
    if (options_.generator_seed) generator_ = random::make_generator(*options_.generator_seed);
  }

  void reset() override {
    order_ = at::arange(options_.size, at::kLong);
    if (generator_.defined()) order_ = at::randperm(options_.size, generator_, at::kLong);
    next_ = 0;
  }
  std::optional<Value> next() override {
    if (next_ == options_.size) return std::nullopt;
    ++record_->reads;
    return items_.item(order_[next_++].item<std::int64_t>());
  }
  [[nodiscard]] std::optional<std::int64_t> size() const override {
    return options_.is_sized ? std::optional(options_.size) : std::nullopt;
  }
  [[nodiscard]] bool follows_epochs() const override { return options_.logs_epochs; }
  void set_epoch(std::int64_t epoch) override {
    if (options_.logs_epochs) record_->epochs_seen.push_back(epoch);
  }
  at::Generator* generator() override { return &generator_; }

 private:
  Items items_;
  StreamOptions options_;
  std::shared_ptr<DatasetRecord> record_;
  at::Generator generator_;
  at::Tensor order_ = at::empty({0}, at::kLong);
  std::int64_t next_ = 0;
};

/// The fields of a LOADER that say which items go together.
struct Batching {
  explicit Batching(Arguments& arguments)
      : size(arguments.length("n")),
        batch_size(arguments.optional_integer("b", 1)),
        drop_last(arguments.flag("drop_last", false)),
        shuffle(arguments.flag("shuffle", false)),
        replacement(arguments.flag("replacement", false)),
        num_samples(arguments.optional_integer("num_samples")),
        generator_seed(arguments.optional_integer("generator")),
        listed(listed_batches_from(arguments)),
        sampler_batches(arguments.flag("sampler_batches", false)) {}

  std::int64_t size;
  std::optional<std::int64_t> batch_size;
  bool drop_last, shuffle, replacement;
  std::optional<std::int64_t> num_samples, generator_seed;
  std::shared_ptr<ListedBatches> listed;
  bool sampler_batches;
};

data::DataLoaderOptions options_of(const Batching& batching) {
  data::DataLoaderOptions options;
  if (batching.generator_seed) options.generator = random::make_generator(*batching.generator_seed);
  if (batching.listed) {
    options.batch_sampler = batching.listed;
    return options;
  }
  options.batch_size = batching.batch_size;
  options.drop_last = batching.drop_last;
  if (batching.sampler_batches) {
    options.batch_size.reset();
    options.drop_last = false;
    options.sampler = std::make_shared<data::SamplerBatches>(std::make_shared<data::SequentialSampler>(batching.size),
                                                             batching.batch_size.value_or(1), batching.drop_last);
  } else if (batching.shuffle) {
    options.sampler = std::make_shared<data::RandomSampler>(
        batching.size,
        data::RandomSamplerOptions{
            .replacement = batching.replacement, .num_samples = batching.num_samples, .generator = options.generator});
  }
  return options;
}

}  // namespace

std::optional<data::Batch> ListedBatches::next() {
  if (next_ == batches_.size()) return std::nullopt;
  return data::Batch{.indices = batches_[next_++]};
}

std::shared_ptr<ListedBatches> listed_batches_from(Arguments& arguments) {
  const auto batch_size = arguments.optional_integer("batches_b");
  const bool drop_last = arguments.optional_flag("batches_drop_last").value_or(false);
  const auto lists = arguments.json("batches");
  if (lists.is_null()) return nullptr;
  const auto is_index_list = [](const Json& list) {
    return list.is_array() && std::ranges::all_of(list, [](const Json& index) { return index.is_number_integer(); });
  };
  if (!lists.is_array() || !std::ranges::all_of(lists, is_index_list)) arguments.refuse("batches", "index lists");
  return std::make_shared<ListedBatches>(lists.get<std::vector<Indices>>(), batch_size, drop_last);
}

std::shared_ptr<data::IterableDataset> make_stream(const Items& items, const StreamOptions& options,
                                                   std::shared_ptr<DatasetRecord> record) {
  return std::make_shared<CountedStream>(items, options, std::move(record));
}

namespace {

enum class Kind { map, iterable, sized_iterable };

Kind kind_from(Arguments& arguments) {
  const auto word = arguments.word("kind", "map");
  if (word == "map") return Kind::map;
  if (word == "iterable") return Kind::iterable;
  if (word == "sized_iterable") return Kind::sized_iterable;
  arguments.refuse("kind", "map, iterable or sized_iterable");
}

}  // namespace

LoaderCase loader_from(Arguments& arguments) {
  const auto kind = kind_from(arguments);
  const Items items(arguments);
  const Batching batching(arguments);
  const StreamOptions stream{.size = batching.size,
                             .is_sized = kind == Kind::sized_iterable,
                             .logs_epochs = arguments.flag("epoch_log", false),
                             .generator_seed = arguments.optional_integer("dataset_generator")};
  const bool prepare = arguments.flag("prepare", true);
  arguments.finish();
  const auto record = std::make_shared<DatasetRecord>();
  const auto loader = [&] {
    if (kind != Kind::map) return data::DataLoader(make_stream(items, stream, record), options_of(batching));
    const std::shared_ptr<data::Dataset> dataset =
        std::make_shared<CountedDataset>(items, batching.size, stream.logs_epochs, record);
    return data::DataLoader(dataset, options_of(batching));
  };
  return {.items = items, .record = record, .loader = loader(), .prepare = prepare};
}

}  // namespace lockstep::conformance
