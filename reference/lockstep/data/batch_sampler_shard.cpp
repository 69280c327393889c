#include "lockstep/data/batch_sampler_shard.h"

#include <c10/util/StringUtil.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

std::shared_ptr<BatchSampler> not_null(std::shared_ptr<BatchSampler> batches) {
  if (batches) return batches;
  throw InvalidArgument({.where = "BatchSamplerShard", .expected = "a batch sampler", .got = "an empty pointer"});
}

Tail tail_of(const BatchSampler& batches, const ShardOptions& options) {
  if (batches.drop_last()) return Tail::drop;
  return options.even_batches ? Tail::even : Tail::keep;
}

std::optional<std::int64_t> share_size_of(const BatchSampler& batches, World world, bool split) {
  const auto batch_size = batches.batch_size();
  if (batch_size && *batch_size < 1) {
    throw InvalidArgument({.where = "BatchSamplerShard",
                           .expected = "batch_size to be positive",
                           .got = c10::str("batch_size ", *batch_size),
                           .fix = "Leave batch_size() unset for batches of varying size."});
  }
  return split ? std::optional(split_size(batch_size, world, "BatchSamplerShard")) : batch_size;
}

// The indices of the first round, over and over: where a filled share stops, the next one goes on.
class Cycle {
 public:
  explicit Cycle(const std::vector<Batch>& head) {
    for (const auto& share : head) indices_.insert(indices_.end(), share.indices.begin(), share.indices.end());
  }
  void fill(Batch& share, std::int64_t size) {
    for (; share.size() < size; ++share.num_padding) share.indices.push_back(indices_[place_++ % indices_.size()]);
  }

 private:
  std::vector<std::int64_t> indices_;
  std::size_t place_ = 0;
};

}  // namespace

std::int64_t split_size(std::optional<std::int64_t> batch_size, World world, const std::string& where) {
  if (batch_size && *batch_size % world.size == 0) return *batch_size / world.size;
  throw InvalidArgument({.where = where + "(split_batches=true)",
                         .expected = c10::str("batch_size to be a multiple of world size ", world.size),
                         .got = batch_size ? c10::str("batch_size ", *batch_size) : "no batch size",
                         .fix = batch_size ? "Round batch_size up to that multiple, or pass split_batches=false."
                                           : "Give the loader or the batch sampler one, or pass split_batches=false."});
}

BatchSamplerShard::BatchSamplerShard(std::shared_ptr<BatchSampler> batches, World world, ShardOptions options)
    : batches_(not_null(std::move(batches))),
      world_(checked(world, "BatchSamplerShard")),
      split_(options.split_batches),
      tail_(tail_of(*batches_, options)),
      share_size_(share_size_of(*batches_, world_, split_)) {}

void BatchSamplerShard::reset() {
  batches_->reset();
  num_taken_ = 0;
  head_.clear();
}

std::optional<Batch> BatchSamplerShard::next() {
  auto round = take_round();
  if (round.empty()) return std::nullopt;
  if (!is_complete(round)) {
    if (tail_ == Tail::drop) return std::nullopt;
    if (tail_ == Tail::even) fill_from_head(round);
  }
  const auto mine = static_cast<std::size_t>(world_.rank);
  return mine < round.size() ? std::optional(std::move(round[mine])) : std::nullopt;
}

BatchSamplerShard::Round BatchSamplerShard::take_round() {
  Round round;
  const std::size_t wanted = split_ ? 1 : static_cast<std::size_t>(world_.size);
  while (round.size() < wanted) {
    auto batch = batches_->next();
    if (!batch) break;
    round.push_back(std::move(*batch));
  }
  check_sizes(round);
  num_taken_ += static_cast<std::int64_t>(round.size());
  if (split_ && !round.empty()) round = cut(round.front());
  if (head_.empty() && tail_ == Tail::even) head_ = round;
  return round;
}

// A short batch is the pass's last one. Only asking for another tells; then the pass is broken, so the odd batch is an
// error before anything of its round is handed out.
void BatchSamplerShard::check_sizes(const Round& batches) {
  const auto size = batch_size();
  if (!size) return;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto got = batches[i].size();
    if (got == *size) continue;
    const bool may_be_short = i + 1 == batches.size() && got > 0 && got < *size;
    if (may_be_short && !batches_->next()) return;
    throw InvalidArgument(
        {.where = "BatchSamplerShard",
         .expected = c10::str("batches of batch_size ", *size, ", of which only the last may be shorter"),
         .got = c10::str("batch ", num_taken_ + static_cast<std::int64_t>(i), " with ", got, " indices"),
         .fix = "Leave batch_size() unset for batches of varying size: they are then dealt whole."});
  }
}

BatchSamplerShard::Round BatchSamplerShard::cut(const Batch& batch) const {
  Round parts;
  for (auto from = batch.indices.begin(); from != batch.indices.end();) {
    const auto to = from + std::min<std::ptrdiff_t>(*share_size_, batch.indices.end() - from);
    parts.push_back({.indices = {from, to}});
    from = to;
  }
  return parts;
}

bool BatchSamplerShard::is_complete(const Round& round) const {
  const bool all_there = round.size() == static_cast<std::size_t>(world_.size);
  return all_there && (!share_size_ || round.back().size() == *share_size_);
}

void BatchSamplerShard::fill_from_head(Round& round) const {
  const auto wanted = static_cast<std::size_t>(world_.size);
  if (!share_size_) {
    for (std::size_t i = 0; round.size() < wanted; ++i) {
      auto repeated = head_[i % head_.size()];
      repeated.num_padding = repeated.size();
      round.push_back(std::move(repeated));
    }
    return;
  }
  Cycle head(head_);
  head.fill(round.back(), *share_size_);
  while (round.size() < wanted) head.fill(round.emplace_back(), *share_size_);
}

std::int64_t BatchSamplerShard::length() const {
  const auto total = batches_->length();
  if (split_) {
    const auto indices = tail_ == Tail::keep ? num_indices() : std::nullopt;
    const auto in_short_batch = indices.value_or(0) % *batch_size();
    const bool gets_none = in_short_batch > 0 && in_short_batch <= world_.rank * *share_size_;
    return gets_none ? total - 1 : total;
  }
  const auto rounds = total / world_.size;
  const auto left_over = total % world_.size;
  if (tail_ == Tail::drop || left_over == 0) return rounds;
  return tail_ == Tail::even || world_.rank < left_over ? rounds + 1 : rounds;
}

std::shared_ptr<BatchSampler> BatchSamplerShard::with_sampler(std::shared_ptr<Sampler> other) const {
  auto batches = batches_->with_sampler(std::move(other));
  if (!batches) return nullptr;
  auto shard = std::make_shared<BatchSamplerShard>(*this);
  shard->batches_ = std::move(batches);
  return shard;
}

bool BatchSamplerShard::is_rank_sharded() const { return world_.size > 1 || batches_->is_rank_sharded(); }

std::optional<std::int64_t> BatchSamplerShard::total_batch_size() const {
  const auto size = batch_size();
  return size && !split_ ? std::optional(*size * world_.size) : size;
}

}  // namespace lockstep::data
