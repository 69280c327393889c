#include "lockstep/conformance/serve/loader_case.h"

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

/// The fields of a LOADER that say which items go together.
struct Batching {
  explicit Batching(Arguments& arguments)
      : size(arguments.integer("n")),
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

LoaderCase loader_from(Arguments& arguments) {
  if (arguments.word("kind", "map") != "map") arguments.refuse("kind", "map");
  const Items items(arguments);
  const Batching batching(arguments);
  const bool logs_epochs = arguments.flag("epoch_log", false);
  const bool prepare = arguments.flag("prepare", true);
  if (arguments.optional_integer("dataset_generator")) arguments.refuse("dataset_generator", "null with kind map");
  arguments.finish();
  const auto record = std::make_shared<DatasetRecord>();
  const std::shared_ptr<data::Dataset> dataset =
      std::make_shared<CountedDataset>(items, batching.size, logs_epochs, record);
  return {
      .items = items, .record = record, .loader = data::DataLoader(dataset, options_of(batching)), .prepare = prepare};
}

}  // namespace lockstep::conformance
