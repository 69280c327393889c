#include "lockstep/parallel/ddp/join.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/parallel/ddp/distributed_data_parallel.h"

namespace lockstep::parallel {
namespace {

// What a rank is about to do, as one number.
constexpr std::int64_t kNoInputs = -1;

std::int64_t code_of(std::ptrdiff_t engine, const Reduction& reduction) {
  return engine * 4 + (reduction.has_forward ? 2 : 0) + (reduction.takes_buffers ? 1 : 0);
}
std::int64_t engine_of(std::int64_t code) { return code / 4; }
Reduction reduction_of(std::int64_t code) { return {.has_forward = (code & 2) != 0, .takes_buffers = (code & 1) != 0}; }

std::string described(std::int64_t code) {
  const auto reduction = reduction_of(code);
  return fmt::format("reduces the gradients of model {}{}{}", engine_of(code),
                     reduction.has_forward ? "" : " without a forward before",
                     reduction.takes_buffers ? ", after a broadcast of its buffers" : "");
}

void require_same(const std::vector<std::int64_t>& codes, const std::vector<int>& ranks) {
  const auto code = [&codes](int rank) { return codes[static_cast<std::size_t>(rank)]; };
  if (std::ranges::all_of(ranks, [&](int rank) { return code(rank) == code(ranks.front()); })) return;
  std::string text;
  for (const int rank : ranks) text += fmt::format("\n  - rank {}: {}", rank, described(code(rank)));
  throw CollectiveMismatch({.where = "join_uneven_inputs",
                            .expected = "the ranks that still have inputs to do the same",
                            .got = text,
                            .fix = "\nCall the same models, in the same mode and order, on all ranks."});
}

}  // namespace

Join::Join(std::vector<std::shared_ptr<DistributedDataParallel>> engines, comm::ProcessGroup group, JoinDivisor divisor)
    : engines_(std::move(engines)), group_(std::move(group)), divisor_(divisor) {
  for (const auto& engine : engines_) engine->require_joinable(divisor_);
  for (const auto& engine : engines_) engine->begin_join(*this);
  with_inputs_.resize(static_cast<std::size_t>(group_.size()));
  std::iota(with_inputs_.begin(), with_inputs_.end(), 0);
}

Join::~Join() {
  for (const auto& engine : engines_) engine->end_join();
}

void Join::require_nothing_pending() const {
  if (pending_ == nullptr) return;
  throw RuntimeError({.where = "join_uneven_inputs",
                      .expected = "each forward that synchronises to be followed by accelerator.backward of its loss",
                      .got = "another forward, or the end of the loop, before it",
                      .fix = "Run forwards without a backward under NoGradGuard, and all but the last of several "
                             "forwards of one backward under no_sync."});
}

const std::vector<int>& Join::agree(const DistributedDataParallel& engine, const Reduction& reduction) {
  require_nothing_pending();
  const auto mine = std::ranges::find(engines_, &engine, [](const auto& one) { return one.get(); });
  exchange(code_of(mine - engines_.begin(), reduction));
  pending_ = &engine;
  return with_inputs_;
}

void Join::complete(const DistributedDataParallel& engine) {
  if (is_pending(engine)) pending_ = nullptr;
}

int Join::finish() {
  require_nothing_pending();
  for (auto code = exchange(kNoInputs); code != kNoInputs; code = exchange(kNoInputs)) {
    auto& engine = *engines_[static_cast<std::size_t>(engine_of(code))];
    engine.shadow(reduction_of(code), /*root=*/with_inputs_.front());
  }
  for (const auto& engine : engines_) engine->take_model_from(with_inputs_.front());
  return with_inputs_.front();
}

// Tells the others this rank's code and returns that of those who have inputs, kNoInputs if nobody has.
std::int64_t Join::exchange(std::int64_t mine) {
  const auto options = at::TensorOptions(at::kLong).device(engines_.front()->device());
  const auto all = at::empty({group_.size()}, options);
  group_.all_gather(all, at::full({1}, mine, options)).wait();
  const auto on_cpu = all.cpu();
  const std::vector<std::int64_t> codes(on_cpu.const_data_ptr<std::int64_t>(),
                                        on_cpu.const_data_ptr<std::int64_t>() + group_.size());
  std::vector<int> with_inputs;
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (codes[static_cast<std::size_t>(rank)] != kNoInputs) with_inputs.push_back(rank);
  }
  if (with_inputs.empty()) return kNoInputs;
  require_same(codes, with_inputs);
  with_inputs_ = std::move(with_inputs);
  return codes[static_cast<std::size_t>(with_inputs_.front())];
}

}  // namespace lockstep::parallel
