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

Tail tail_of(const BatchSampler& batches, bool even_batches) {
  if (batches.drop_last()) return Tail::drop;
  return even_batches ? Tail::even : Tail::keep;
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
      even_batches_(options.even_batches),
      tail_(tail_of(*batches_, even_batches_)),
      share_size_(share_size_of(*batches_, world_, split_)) {}

void BatchSamplerShard::reset() {
  batches_->reset();
  num_taken_ = 0;
  head_.clear();
}

std::optional<Batch> BatchSamplerShard::next() {
  auto round = take_round();  // the next world.size shares, fewer at the end of the pass
  if (round.sizes.empty()) return std::nullopt;
  if (!is_complete(round)) {
    if (tail_ == Tail::drop) return std::nullopt;
    if (tail_ == Tail::even) return filled_from_head(std::move(round));
  }
  const bool is_there = static_cast<std::size_t>(world_.rank) < round.sizes.size();
  return is_there ? std::optional(std::move(round.mine)) : std::nullopt;
}

BatchSamplerShard::Round BatchSamplerShard::take_round() { return split_ ? take_parts() : take_batches(); }

// The batches of other ranks are passed over, but for those of the head, which may be needed at the end.
BatchSamplerShard::Round BatchSamplerShard::take_batches() {
  const bool keep_head = num_taken_ == 0 && tail_ == Tail::even;
  Round round;
  round.sizes.reserve(static_cast<std::size_t>(world_.size));
  for (int rank = 0; rank < world_.size; ++rank) {
    if (rank != world_.rank && !keep_head) {
      const auto size = batches_->skip();
      if (!size) break;
      round.sizes.push_back(*size);
      continue;
    }
    auto batch = batches_->next();
    if (!batch) break;
    round.sizes.push_back(batch->size());
    if (keep_head) head_.push_back(*batch);
    if (rank == world_.rank) round.mine = *std::move(batch);
  }
  check_sizes(round.sizes);
  num_taken_ += static_cast<std::int64_t>(round.sizes.size());
  return round;
}

BatchSamplerShard::Round BatchSamplerShard::take_parts() {
  auto batch = batches_->next();
  if (!batch) return {};
  const auto size = batch->size();
  check_sizes({size});
  ++num_taken_;
  Round round;
  for (std::int64_t begin = 0; begin < size; begin += *share_size_) {
    round.sizes.push_back(std::min(*share_size_, size - begin));
  }
  const auto begin = std::min(world_.rank * *share_size_, size);
  const auto end = std::min(begin + *share_size_, size);
  round.mine.indices.assign(batch->indices.begin() + begin, batch->indices.begin() + end);
  if (head_.empty() && tail_ == Tail::even) head_.push_back(*std::move(batch));
  return round;
}

// A short batch is the pass's last one. Only asking for another tells; then the pass is broken, so the odd batch is an
// error before anything of its round is handed out.
void BatchSamplerShard::check_sizes(const std::vector<std::int64_t>& batch_sizes) {
  const auto size = batch_size();
  if (!size) return;
  for (std::size_t i = 0; i < batch_sizes.size(); ++i) {
    const auto got = batch_sizes[i];
    if (got == *size) continue;
    const bool may_be_short = i + 1 == batch_sizes.size() && got > 0 && got < *size;
    if (may_be_short && !batches_->next()) return;
    throw InvalidArgument(
        {.where = "BatchSamplerShard",
         .expected = c10::str("batches of batch_size ", *size, ", of which only the last may be shorter"),
         .got = c10::str("batch ", num_taken_ + static_cast<std::int64_t>(i), " with ", got, " indices"),
         .fix = "Leave batch_size() unset for batches of varying size: they are then dealt whole."});
  }
}

bool BatchSamplerShard::is_complete(const Round& round) const {
  const bool all_there = round.sizes.size() == static_cast<std::size_t>(world_.size);
  return all_there && (!share_size_ || round.sizes.back() == *share_size_);
}

// This rank's share of an incomplete round: indices of the head, over and over, going on where the shares of the ranks
// before stop. Batches of varying size are not filled, but whole ones of the head stand in for those that are missing.
Batch BatchSamplerShard::filled_from_head(Round round) const {
  const auto mine = static_cast<std::size_t>(world_.rank);
  if (!share_size_) {
    if (mine < round.sizes.size()) return std::move(round.mine);
    auto repeated = head_[(mine - round.sizes.size()) % head_.size()];
    repeated.num_padding = repeated.size();
    return repeated;
  }
  std::vector<std::int64_t> cycle;
  for (const auto& batch : head_) cycle.insert(cycle.end(), batch.indices.begin(), batch.indices.end());
  round.sizes.resize(static_cast<std::size_t>(world_.size), 0);
  std::size_t place = 0;
  for (std::size_t rank = 0; rank < mine; ++rank) place += static_cast<std::size_t>(*share_size_ - round.sizes[rank]);
  auto share = std::move(round.mine);
  for (; share.size() < *share_size_; ++share.num_padding) share.indices.push_back(cycle[place++ % cycle.size()]);
  return share;
}

void BatchSamplerShard::set_even_batches(bool on) {
  even_batches_ = on;
  tail_ = tail_of(*batches_, on);
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
