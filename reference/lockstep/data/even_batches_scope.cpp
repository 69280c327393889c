#include "lockstep/data/even_batches_scope.h"

#include "lockstep/data/data_loader_dispatcher.h"

namespace lockstep::data {
namespace {

bool ignores_even_batches(const PreparedDataLoader& loader) {
  return loader.loader().is_iterable() || dynamic_cast<const DataLoaderDispatcher*>(&loader) != nullptr;
}

}  // namespace

EvenBatchesScope::EvenBatchesScope(const std::vector<std::shared_ptr<PreparedDataLoader>>& loaders, bool even_batches) {
  for (const auto& loader : loaders) {
    if (ignores_even_batches(*loader)) {
      ++num_untouched_;
    } else if (auto shard = std::dynamic_pointer_cast<BatchSamplerShard>(loader->batch_sampler())) {
      before_.emplace_back(shard, shard->even_batches());
      shard->set_even_batches(even_batches);
    }
  }
}

EvenBatchesScope::EvenBatchesScope(EvenBatchesScope&& other) noexcept
    : before_(std::exchange(other.before_, {})), num_untouched_(other.num_untouched_) {}

EvenBatchesScope::~EvenBatchesScope() {
  // Backwards: a shard that several loaders share was changed before it was noted again.
  for (auto entry = before_.rbegin(); entry != before_.rend(); ++entry) entry->first->set_even_batches(entry->second);
}

}  // namespace lockstep::data
