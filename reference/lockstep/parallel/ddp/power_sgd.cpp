#include "lockstep/parallel/ddp/power_sgd.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/logging.h"

namespace lockstep::parallel {
namespace {

// As numpy.random.RandomState draws it, so that the same seed gives PyTorch's first factors.
std::uint64_t draw_below(std::uint32_t limit, std::mt19937& engine) {
  std::uint32_t mask = limit - 1;
  for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
  for (;;) {
    const auto drawn = static_cast<std::uint32_t>(engine()) & mask;
    if (drawn < limit) return drawn;
  }
}

void orthogonalize_by_gram_schmidt(const at::Tensor& matrices, double epsilon) {
  for (std::int64_t i = 0; i < matrices.size(2); ++i) {
    auto column = matrices.narrow(2, i, 1);
    column.div_(at::norm(column, 2, /*dim=*/{1}, /*keepdim=*/true).add_(epsilon));
    if (i + 1 == matrices.size(2)) return;
    auto rest = matrices.narrow(2, i + 1, matrices.size(2) - i - 1);
    rest.sub_(at::sum(column * rest, /*dim=*/{1}, /*keepdim=*/true) * column);
  }
}

}  // namespace

PowerSgd::PowerSgd(comm::ProcessGroup group, const config::PowerSgdOptions& options)
    : group_(std::move(group)), options_(options), seeds_(options.random_seed) {}

void PowerSgd::reduce(const Bucket& bucket, Granularity granularity) {
  if (iteration_ < options_.start_powerSGD_iter) {
    average(bucket.buffer);
  } else {
    granularity == Granularity::matrix ? reduce_matrices(bucket) : reduce_as_one_matrix(bucket);
    forget_unless_finite(bucket);
  }
  if (bucket.is_last) ++iteration_;
}

// An overflow ends with its step: kept in the error or in the factors it would come back in every later one. All ranks
// see the same buffer, and so agree.
void PowerSgd::forget_unless_finite(const Bucket& bucket) {
  if (bucket.buffer.isfinite().all().item<bool>()) return;
  errors_.erase(bucket.index);
  factors_.erase(bucket.index);
}

void PowerSgd::average(const at::Tensor& tensor) const {
  tensor.div_(group_.size());
  group_.all_reduce(tensor).wait();
}

void PowerSgd::average_together(const std::vector<at::Tensor>& tensors) const {
  if (tensors.empty()) return;
  std::vector<at::Tensor> rows;
  for (const auto& tensor : tensors) rows.push_back(tensor.reshape({-1}));
  const auto all = at::cat(rows);
  group_.all_reduce(all).wait();
  all.div_(group_.size());
  std::int64_t begin = 0;
  for (const auto& tensor : tensors) {
    tensor.copy_(all.narrow(0, begin, tensor.numel()).view_as(tensor));
    begin += tensor.numel();
  }
}

std::int64_t PowerSgd::rank_for(const at::Tensor& matrix) const {
  return std::min({matrix.size(-2), matrix.size(-1), options_.matrix_approximation_rank});
}

bool PowerSgd::is_worth_compressing(const at::Tensor& matrix) {
  const auto compressed = (matrix.size(0) + matrix.size(1)) * rank_for(matrix);
  const bool is_worth_it =
      static_cast<double>(compressed) * options_.min_compression_rate < static_cast<double>(matrix.numel());
  numel_before_ += matrix.numel();
  numel_after_ += is_worth_it ? compressed : matrix.numel();
  return is_worth_it;
}

void PowerSgd::reduce_matrices(const Bucket& bucket) {
  const auto& buffer = bucket.buffer;
  if (const auto error = errors_.find(bucket.index); error != errors_.end()) buffer.add_(error->second);
  const auto wanted = options_.use_error_feedback ? buffer.clone() : at::Tensor();

  std::vector<at::Tensor> to_compress, plain;
  for (const auto& gradient : bucket.gradients) {
    const auto matrix = gradient.dim() == 0 ? gradient.view({1, 1}) : gradient.view({gradient.size(0), -1});
    (is_worth_compressing(matrix) ? to_compress : plain).push_back(matrix);
  }
  report_compression(bucket);
  average_together(plain);
  approximate(bucket, to_compress);
  if (options_.use_error_feedback) errors_[bucket.index] = wanted - buffer;
}

void PowerSgd::reduce_as_one_matrix(const Bucket& bucket) {
  const auto length = bucket.buffer.numel();
  const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(length))));
  const auto square = at::zeros({side * side}, bucket.buffer.options());
  square.narrow(0, 0, length).copy_(bucket.buffer);
  if (const auto error = errors_.find(bucket.index); error != errors_.end()) square.add_(error->second);
  const auto wanted = options_.use_error_feedback ? square.clone() : at::Tensor();

  const auto matrix = square.view({side, side});
  numel_before_ += length;
  numel_after_ += 2 * side * rank_for(matrix);
  report_compression(bucket);
  approximate(bucket, {matrix});
  bucket.buffer.copy_(square.narrow(0, 0, length));
  if (options_.use_error_feedback) errors_[bucket.index] = wanted - square;
}

// Shapes in order of their first matrix, and one stack for each matrix unless they are to be batched.
std::vector<PowerSgd::Stack> PowerSgd::stacks_of(const std::vector<at::Tensor>& matrices) const {
  std::vector<std::vector<at::Tensor>> by_shape;
  for (const auto& matrix : matrices) {
    const auto same =
        std::ranges::find_if(by_shape, [&](const auto& group) { return group.front().sizes() == matrix.sizes(); });
    same == by_shape.end() ? by_shape.push_back({matrix}) : same->push_back(matrix);
  }
  std::vector<Stack> stacks;
  for (const auto& group : by_shape) {
    if (options_.batch_tensors_with_same_shape && group.size() > 1) {
      stacks.push_back({at::stack(group), group});
    } else {
      for (const auto& matrix : group) stacks.push_back({matrix.unsqueeze(0), {}});
    }
  }
  return stacks;
}

void PowerSgd::Stack::copy_back() const {
  for (std::size_t i = 0; i < members.size(); ++i) members[i].copy_(matrices[static_cast<std::int64_t>(i)]);
}

// A [batch, size(dim), rank] part of the memory for each stack.
std::vector<at::Tensor> PowerSgd::cut(const at::Tensor& memory, const std::vector<Stack>& stacks, int dim) const {
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const auto& stack : stacks) {
    const auto batch = stack.matrices.size(0), size = stack.matrices.size(dim), rank = rank_for(stack.matrices);
    parts.push_back(memory.narrow(0, begin, batch * size * rank).view({batch, size, rank}));
    begin += batch * size * rank;
  }
  return parts;
}

PowerSgd::Factors& PowerSgd::factors_of(const Bucket& bucket, const std::vector<at::Tensor>& matrices, bool anew) {
  if (anew) {
    std::int64_t ps = 0, qs = 0;
    for (const auto& matrix : matrices) {
      ps += matrix.size(0) * rank_for(matrix);
      qs += matrix.size(1) * rank_for(matrix);
    }
    const auto options = bucket.buffer.options();
    factors_[bucket.index] = {at::empty({ps}, options), at::empty({qs}, options)};
  }
  return factors_.at(bucket.index);
}

void PowerSgd::approximate(const Bucket& bucket, const std::vector<at::Tensor>& matrices) {
  const auto stacks = stacks_of(matrices);
  const bool begins = !options_.warm_start || !factors_.contains(bucket.index);
  auto& factors = factors_of(bucket, matrices, begins);
  auto ps = cut(factors.ps, stacks, /*dim=*/1), qs = cut(factors.qs, stacks, /*dim=*/2);
  if (begins) fill_randomly(qs);
  if (stacks.empty()) return;
  for (const auto& one : qs) orthogonalize(one);
  for (std::size_t i = 0; i < stacks.size(); ++i) at::bmm_out(ps[i], stacks[i].matrices, qs[i]);
  group_.all_reduce(factors.ps).wait();
  for (const auto& one : ps) orthogonalize(one);
  for (std::size_t i = 0; i < stacks.size(); ++i) at::bmm_out(qs[i], stacks[i].matrices.transpose(1, 2), ps[i]);
  group_.all_reduce(factors.qs).wait();
  factors.qs.div_(group_.size());
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    auto result = stacks[i].matrices;
    at::bmm_out(result, ps[i], qs[i].transpose(1, 2));
    stacks[i].copy_back();
  }
}

void PowerSgd::orthogonalize(const at::Tensor& matrices) const {
  const auto dtype = matrices.scalar_type();
  if (matrices.size(2) <= 2 || dtype == at::kHalf || dtype == at::kBFloat16) {
    return orthogonalize_by_gram_schmidt(matrices, options_.orthogonalization_epsilon);
  }
  matrices.copy_(std::get<0>(at::linalg_qr(matrices)));
}

void PowerSgd::fill_randomly(const std::vector<at::Tensor>& qs) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(draw_below(1'000'000'000, seeds_));
  for (const auto& q : qs) q.copy_(at::randn(q.sizes(), generator, q.options().device(at::kCPU)));
}

void PowerSgd::report_compression(const Bucket& bucket) {
  if (!bucket.is_last || iteration_ < next_report_) return;
  log::debug(fmt::format("PowerSGD: {} numbers sent in place of {} until iteration {}", numel_after_, numel_before_,
                         iteration_));
  next_report_ = iteration_ + std::max<std::int64_t>(1, options_.compression_stats_logging_frequency);
}

}  // namespace lockstep::parallel
