#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/config/distributed_data_parallel_kwargs.h"
#include "lockstep/modules/model_engine.h"
#include "lockstep/parallel/ddp/join.h"

namespace torch::nn {
class Module;
}

namespace lockstep::parallel {

class CommHooks;

/// Data parallelism: every rank holds the whole model and computes gradients on its own batch; their mean over the
/// ranks is formed while backward still runs, bucket by bucket, by c10d::Reducer.
///
/// Construction makes all ranks equal: parameters and buffers become rank 0's. After a backward every rank holds the
/// same gradients, the mean of the ranks' local ones; unequal local batches therefore weigh alike (DDP-003).
///
/// @throws InvalidArgument, NotSupported  for options that are not valid (valid_kwargs.h)
/// @throws RuntimeError        if no parameter requires a gradient
/// @throws CollectiveMismatch  on every rank, if the ranks' models differ in their parameters' names, shapes, dtypes,
/// or
///                             in which of them are frozen
/// @clause DDP-001..012
/// @source Li et al. 2020, PyTorch Distributed, section 3; PyTorch, DistributedDataParallel
class LOCKSTEP_API DistributedDataParallel final : public modules::ModelEngine {
 public:
  DistributedDataParallel(std::shared_ptr<torch::nn::Module> model, comm::ProcessGroup group,
                          const config::DistributedDataParallelKwargs& kwargs);
  ~DistributedDataParallel() override;

  void before_forward() override;
  void after_forward(const std::vector<at::Tensor>& outputs) override;
  /// @throws RuntimeError  if parameters took no part in this backward and find_unused_parameters is off, naming them
  void after_backward() override;

  /// Names of the parameters in each bucket, in the order in which buckets are reduced.
  [[nodiscard]] std::vector<std::vector<std::string>> buckets() const;

  // -- What Join calls (join.h) --------------------------------------------------------------------------------------
  /// @throws NotSupported, InvalidArgument  as Join's constructor
  void require_joinable(JoinDivisor divisor) const;
  /// Until end_join, each reduction is agreed upon before it begins.
  void begin_join(Join& join) { join_ = &join; }
  void end_join();
  /// Takes this rank's part in a reduction of the others, with zeros for gradients. Its own gradients stay.
  /// @param root  whose buffers are taken
  void shadow(const Reduction& reduction, int root);
  /// Parameters become those of `root`, and so do buffers unless each rank keeps its own (DDP-008).
  void take_model_from(int root);
  [[nodiscard]] at::Device device() const;

 private:
  struct Parts;

  void start_reducer();
  void rebuild_buckets();
  int agree(const Reduction& reduction);
  void divide_by(int divisor);
  void reduce_zeros();
  void warn_of_local_gradients();
  void begin_learning();
  void end_learning();
  void broadcast_buffers(int root);
  void label_buckets();
  [[nodiscard]] std::vector<std::string> names_without_gradient() const;

  std::shared_ptr<torch::nn::Module> model_;
  comm::ProcessGroup group_;
  config::DistributedDataParallelKwargs kwargs_;
  std::unique_ptr<CommHooks> hooks_;
  bool expects_backward_ = false;
  bool has_seen_forward_ = false;  // that records a gradient
  bool has_warned_ = false;
  int divisor_;  // of the sum of the ranks' gradients
  Join* join_ = nullptr;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep::parallel
