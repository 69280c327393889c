#include "lockstep/data/data_loader.h"

#include <c10/util/StringUtil.h>

#include "lockstep/base/error.h"
#include "lockstep/random/generator.h"

namespace lockstep::data {
namespace {

void require(bool holds, const char* expected, const std::string& got, const char* fix = "") {
  if (!holds) throw InvalidArgument({.where = "DataLoader", .expected = expected, .got = got, .fix = fix});
}

bool has_sampler(const DataLoaderOptions& options) { return !std::holds_alternative<std::monostate>(options.sampler); }

template <typename Sampler>
bool is_null_pointer(const std::shared_ptr<Sampler>& sampler) {
  return sampler == nullptr;
}
bool is_null_pointer(std::monostate /*nothing was given*/) { return false; }

bool has_sampler_of_batches(const DataLoaderOptions& options) {
  return std::holds_alternative<std::shared_ptr<BatchSampler>>(options.sampler);
}

void check_sampling(const DataLoaderOptions& options) {
  const bool is_null = std::visit([](const auto& sampler) { return is_null_pointer(sampler); }, options.sampler);
  require(!is_null, "a sampler", "an empty pointer", "Leave it out, or make it first.");
  require(!(has_sampler(options) && options.shuffle), "either a sampler or shuffle=true", "both",
          "Shuffle in the sampler.");
  if (options.batch_sampler) {
    require(options.batch_size == 1 && !options.shuffle && !has_sampler(options) && !options.drop_last,
            "a batch_sampler alone", "also one of batch_size, shuffle, sampler, drop_last",
            "The batch sampler decides all of these.");
  }
  if (options.batch_size) {
    require(*options.batch_size >= 1, "batch_size to be positive", c10::str("batch_size ", *options.batch_size));
    require(!has_sampler_of_batches(options), "batch_size to be unset with a sampler that yields whole batches",
            c10::str("batch_size ", *options.batch_size), "Pass batch_size=std::nullopt, or a sampler of indices.");
  } else {
    require(!options.drop_last, "drop_last=false without batches", "batch_size unset and drop_last=true");
    const bool has_batches = options.batch_sampler || has_sampler_of_batches(options);
    require(has_batches || !options.collate, "batches to collate", "a collate function, and batch_size unset",
            "Convert items in the dataset.");
  }
}

void check_workers(const DataLoaderOptions& options) {
  require(options.num_workers >= 0, "num_workers not to be negative", c10::str("num_workers ", options.num_workers));
  require(options.timeout.count() >= 0, "timeout not to be negative", c10::str(options.timeout.count(), " ms"));
  require(options.prefetch_factor.value_or(1) >= 1, "prefetch_factor to be positive",
          c10::str("prefetch_factor ", options.prefetch_factor.value_or(1)));
  if (options.num_workers == 0) {
    const char* fix = "Give num_workers at least 1.";
    require(!options.prefetch_factor, "workers to prefetch", "prefetch_factor without num_workers", fix);
    require(options.timeout.count() == 0, "workers to wait for", "timeout without num_workers", fix);
  }
}

void check_iterable(const DataLoaderOptions& options) {
  const char* expected = "an iterable dataset to decide its own order";
  require(!options.shuffle, expected, "shuffle=true", "Shuffle in the dataset.");
  require(!has_sampler(options) && !options.batch_sampler, expected, "a sampler", "Choose the items in the dataset.");
  require(options.num_workers == 0, "an iterable dataset to be read by one thread",
          c10::str("num_workers ", options.num_workers),
          "Workers would share one stream. Pass num_workers=0, and read ahead within the dataset's next().");
}

std::shared_ptr<Sampler> make_sampler(const Dataset& dataset, const DataLoaderOptions& options) {
  if (const auto* given = std::get_if<std::shared_ptr<Sampler>>(&options.sampler)) return *given;
  if (options.shuffle) {
    return std::make_shared<RandomSampler>(dataset.size(), RandomSamplerOptions{.generator = options.generator});
  }
  return std::make_shared<SequentialSampler>(dataset.size());
}

}  // namespace

DataLoader::DataLoader(std::shared_ptr<Dataset> dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  require(dataset_ != nullptr, "a dataset", "an empty pointer");
  check_sampling(options_);
  check_workers(options_);
  if (options_.batch_sampler) {
    batch_sampler_ = options_.batch_sampler;
    options_.batch_size.reset();
  } else if (const auto* whole_batches = std::get_if<std::shared_ptr<BatchSampler>>(&options_.sampler)) {
    batch_sampler_ = *whole_batches;
  } else if (auto indices = make_sampler(*dataset_, options_); options_.batch_size) {
    batch_sampler_ = std::make_shared<SamplerBatches>(std::move(indices), *options_.batch_size, options_.drop_last);
  } else {
    index_sampler_ = std::move(indices);
  }
}

DataLoader::DataLoader(std::shared_ptr<IterableDataset> dataset, DataLoaderOptions options)
    : stream_(std::move(dataset)), options_(std::move(options)) {
  require(stream_ != nullptr, "a dataset", "an empty pointer");
  check_sampling(options_);
  check_workers(options_);
  check_iterable(options_);
}

std::unique_ptr<DataLoader::Pass> DataLoader::pass() const { return std::make_unique<Pass>(*this); }

std::int64_t DataLoader::length() const {
  if (!is_iterable()) return batch_sampler_ ? batch_sampler_->length() : index_sampler_->length();
  const auto items = dataset_length();
  if (!items) {
    throw TypeError({.where = "DataLoader::length",
                     .expected = "a dataset that knows its size",
                     .got = "an iterable one that does not",
                     .fix = "Give it a size(), or count the batches of a pass."});
  }
  const auto batch = batch_size().value_or(1);
  const auto batches = drop_last() ? *items / batch : (*items + batch - 1) / batch;
  return skip_ ? skip_->left_of(batches) : batches;
}

std::optional<std::int64_t> DataLoader::dataset_length() const {
  return is_iterable() ? stream_->size() : std::optional(dataset_->size());
}

Dataset& DataLoader::dataset() const {
  if (dataset_) return *dataset_;
  throw TypeError({.where = "DataLoader::dataset",
                   .expected = "a map-style dataset",
                   .got = "an iterable one",
                   .fix = "Ask for iterable_dataset()."});
}

const std::shared_ptr<IterableDataset>& DataLoader::iterable_dataset() const {
  if (stream_) return stream_;
  throw TypeError({.where = "DataLoader::iterable_dataset",
                   .expected = "an iterable dataset",
                   .got = "a map-style one",
                   .fix = "Ask for dataset()."});
}

void DataLoader::set_dataset_epoch(std::int64_t epoch) const {
  is_iterable() ? stream_->set_epoch(epoch) : dataset_->set_epoch(epoch);
}

std::shared_ptr<Sampler> DataLoader::sampler() const {
  if (!batch_sampler_) return index_sampler_;
  auto lowest = batch_sampler_;
  while (auto below = lowest->wrapped()) lowest = std::move(below);
  return lowest->sampler();
}

// Its passes end those of the original: the sampler at the bottom is the same, and has one cursor.
DataLoader DataLoader::with_batch_sampler(std::shared_ptr<BatchSampler> other) const {
  require(other != nullptr, "a batch sampler", "an empty pointer");
  auto copy = *this;
  copy.batch_sampler_ = std::move(other);
  copy.index_sampler_ = nullptr;
  return copy;
}

// A copy whose passes do not end those of the original.
DataLoader DataLoader::with_sampler(std::shared_ptr<Sampler> other) const {
  require(other != nullptr, "a sampler", "an empty pointer");
  auto copy = *this;
  copy.num_passes_ = std::make_shared<std::uint64_t>(0);
  if (batch_sampler_) {
    auto batches = batch_sampler_->with_sampler(std::move(other));
    require(batches != nullptr, "a batch sampler that can be made over another sampler", "one that cannot",
            "Override BatchSampler::with_sampler, or give it the wanted sampler yourself.");
    return copy.with_batch_sampler(std::move(batches));
  }
  copy.index_sampler_ = std::move(other);
  return copy;
}

DataLoader DataLoader::with_iterable_dataset(std::shared_ptr<IterableDataset> other,
                                             std::optional<std::int64_t> batch_size) const {
  auto copy = *this;
  copy.stream_ = std::move(other);
  if (batch_size) copy.options_.batch_size = batch_size;
  return copy;
}

DataLoader DataLoader::with_skip(Skip skip) const {
  static_cast<void>(iterable_dataset());
  auto copy = *this;
  copy.skip_ = std::make_shared<Skip>(skip_ ? skip_->then(skip) : skip);
  return copy;
}

DataLoader DataLoader::without_generator() const {
  auto copy = *this;
  copy.options_.generator = {};
  return copy;
}

DataLoader DataLoader::with_thread_starter(ThreadStarter starter) const {
  auto copy = *this;
  copy.options_.start_thread = std::move(starter);
  return copy;
}

LoadedBatch DataLoader::load(Batch batch) const {
  if (!batch_sampler_) {
    auto item = get_item(*dataset_, batch.indices.front());
    return {.value = std::move(item), .items = std::move(batch)};
  }
  std::vector<Value> items;
  items.reserve(batch.indices.size());
  for (const auto index : batch.indices) items.push_back(get_item(*dataset_, index));
  return {.value = collate(items), .items = std::move(batch)};
}

Value DataLoader::collate(const std::vector<Value>& items) const {
  return options_.collate ? options_.collate(items) : default_collate(items);
}

DataLoader::Pass::Pass(DataLoader loader) : loader_(std::move(loader)), number_(++*loader_.num_passes_) {
  const auto seed = random::draw_seed(loader_.options_.generator);
  if (loader_.batch_sampler_) {
    loader_.batch_sampler_->reset();
  } else if (loader_.index_sampler_) {
    loader_.index_sampler_->reset();
  }
  if (loader_.num_workers() > 0) workers_ = start_workers(seed);
}

auto DataLoader::Pass::start_workers(std::int64_t seed) -> std::unique_ptr<Pool> {
  const auto& options = loader_.options_;
  WorkerPoolOptions pool{.num_workers = options.num_workers,
                         .prefetch_factor = options.prefetch_factor.value_or(2),
                         .timeout = options.timeout,
                         .seed = seed,
                         .worker_init = options.worker_init,
                         .start_thread = options.start_thread};
  // The workers get a loader of their own, should one of them outlive this pass after a time-out.
  return std::make_unique<Pool>(std::move(pool), [loader = loader_](const Batch& items) { return loader.load(items); });
}

std::optional<Value> DataLoader::Pass::next() {
  auto loaded = next_loaded();
  return loaded ? std::optional(std::move(loaded->value)) : std::nullopt;
}

std::optional<LoadedBatch> DataLoader::Pass::next_loaded() {
  if (number_ != *loader_.num_passes_) {
    throw RuntimeError({.where = "DataLoader",
                        .expected = "one pass over a loader at a time",
                        .got = "a batch of a pass that ended when another began",
                        .fix = "Use a second loader, with samplers of its own, for nested passes."});
  }
  if (over_) return std::nullopt;
  std::optional<LoadedBatch> loaded;
  try {
    loaded = load_next();
  } catch (...) {
    over_ = true;
    workers_.reset();
    throw;
  }
  over_ = !loaded;
  if (over_) {
    workers_.reset();
    if (loader_.batch_sampler_) loader_.batch_sampler_->end_pass();
  }
  return loaded;
}

std::optional<LoadedBatch> DataLoader::Pass::load_next() {
  if (loader_.is_iterable()) return read_next();
  if (!workers_) {
    auto items = next_items();
    return items ? std::optional(loader_.load(*std::move(items))) : std::nullopt;
  }
  while (!workers_->is_full()) {
    auto items = next_items();
    if (!items) break;
    workers_->submit(std::move(*items));
  }
  return workers_->is_empty() ? std::nullopt : std::optional(workers_->take());
}

void DataLoader::Pass::begin_stream() {
  auto& stream = *loader_.stream_;
  stream.reset();
  const auto num_skipped = loader_.skip_ ? loader_.skip_->num_batches * loader_.batch_size().value_or(1) : 0;
  for (std::int64_t i = 0; i < num_skipped && stream.next(); ++i) {
  }
  reading_ = true;
}

std::optional<LoadedBatch> DataLoader::Pass::read_next() {
  if (!reading_) begin_stream();
  auto& stream = *loader_.stream_;
  const auto wanted = static_cast<std::size_t>(loader_.batch_size().value_or(1));
  std::vector<Value> items;
  while (items.size() < wanted) {
    auto item = stream.next();
    if (!item) break;
    items.push_back(*std::move(item));
  }
  const bool is_short = items.size() < wanted;
  if (items.empty() || (is_short && loader_.drop_last())) {
    if (loader_.skip_) loader_.skip_->exhaust();
    return std::nullopt;
  }
  return LoadedBatch{.value = loader_.batch_size() ? loader_.collate(items) : std::move(items.front()), .items = {}};
}

std::optional<Batch> DataLoader::Pass::next_items() {
  if (loader_.batch_sampler_) return loader_.batch_sampler_->next();
  const auto index = loader_.index_sampler_->next();
  return index ? std::optional(Batch{.indices = {*index}}) : std::nullopt;
}

}  // namespace lockstep::data
