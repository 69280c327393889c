#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include "lockstep/comm/process_group.h"
#include "lockstep/config/power_sgd_options.h"

namespace lockstep::parallel {

/// Averages gradients over the ranks by matrices of low rank. A gradient M, n x m, is replaced by P Q^T with P n x r
/// and Q m x r, so that r (n + m) numbers are sent in place of n m:
///
///     P = sum over ranks of M Q, made orthonormal;   Q = mean over ranks of M^T P;   M becomes P Q^T
///
/// With error feedback what this loses is added to the rank's next gradient; with warm start the last Q is the next
/// step's first. The first Q is random, and the same on all ranks and in PyTorch.
///
/// @clause DDP-009, KW-009, KW-010
/// @source Vogels et al. 2019, PowerSGD, algorithms 1 and 2; PyTorch, powerSGD_hook, batched_powerSGD_hook
class PowerSgd {
 public:
  /// Part of a model's gradients, as DDP reduces them.
  struct Bucket {
    std::size_t index = 0;
    bool is_last = false;               ///< of its iteration
    at::Tensor buffer;                  ///< [numel], holds all of them
    std::vector<at::Tensor> gradients;  ///< views into it
  };
  enum class Granularity {
    matrix,  ///< each gradient by itself; what is small or has one dimension is averaged exactly
    bucket,  ///< the buffer as one square matrix, filled up with zeroes
  };

  /// @param options  valid (valid_kwargs.h)
  PowerSgd(comm::ProcessGroup group, const config::PowerSgdOptions& options);

  /// Replaces the bucket's values by their mean over the ranks, exactly or by low rank. Blocks until all ranks have
  /// done it.
  void reduce(const Bucket& bucket, Granularity granularity);

 private:
  /// What the two factors of all matrices of a bucket are cut from.
  struct Factors {
    at::Tensor ps, qs;
  };
  /// Matrices of one shape as one tensor.
  struct Stack {
    at::Tensor matrices;              ///< [batch, n, m]
    std::vector<at::Tensor> members;  ///< what the tensor is a copy of; empty when it is a view of a single matrix
    void copy_back() const;
  };

  void reduce_matrices(const Bucket& bucket);
  void reduce_as_one_matrix(const Bucket& bucket);
  void forget_unless_finite(const Bucket& bucket);
  void average(const at::Tensor& tensor) const;
  void average_together(const std::vector<at::Tensor>& tensors) const;
  [[nodiscard]] bool is_worth_compressing(const at::Tensor& matrix);
  [[nodiscard]] std::int64_t rank_for(const at::Tensor& matrix) const;
  [[nodiscard]] std::vector<Stack> stacks_of(const std::vector<at::Tensor>& matrices) const;
  [[nodiscard]] std::vector<at::Tensor> cut(const at::Tensor& memory, const std::vector<Stack>& stacks, int dim) const;
  Factors& factors_of(const Bucket& bucket, const std::vector<at::Tensor>& matrices, bool anew);
  void approximate(const Bucket& bucket, const std::vector<at::Tensor>& matrices);
  void orthogonalize(const at::Tensor& matrices) const;
  void fill_randomly(const std::vector<at::Tensor>& qs);
  void report_compression(const Bucket& bucket);

  comm::ProcessGroup group_;
  config::PowerSgdOptions options_;
  std::mt19937 seeds_;
  std::int64_t iteration_ = 0;
  std::unordered_map<std::size_t, at::Tensor> errors_;  // by bucket
  std::unordered_map<std::size_t, Factors> factors_;    // by bucket
  std::int64_t numel_before_ = 0, numel_after_ = 0, next_report_ = 0;
};

}  // namespace lockstep::parallel
