#include "lockstep/parallel/ddp/valid_kwargs.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/ddp/comm_hooks.h"

namespace lockstep::parallel {
namespace {

void require_valid(const config::PowerSgdOptions& options) {
  if (options.matrix_approximation_rank < 1) {
    throw InvalidArgument({.where = "PowerSGD(matrix_approximation_rank)",
                           .expected = "at least 1",
                           .got = fmt::format("{}", options.matrix_approximation_rank),
                           .fix = "Leave it out for 1, the coarsest."});
  }
  const bool keeps_something = options.use_error_feedback || options.warm_start;
  if (keeps_something && options.start_powerSGD_iter <= 1) {
    throw InvalidArgument({.where = "PowerSGD(start_powerSGD_iter)",
                           .expected = "more than 1 with use_error_feedback or warm_start",
                           .got = fmt::format("{}", options.start_powerSGD_iter),
                           .fix = "Buckets are made anew after the first iteration; start later."});
  }
}

}  // namespace

void require_valid(const config::DistributedDataParallelKwargs& kwargs) {
  if (kwargs.dim != 0) {
    throw NotSupported({.where = "DistributedDataParallelKwargs(dim)",
                        .expected = "0, the dimension along which batches are shared out",
                        .got = fmt::format("{}", kwargs.dim),
                        .fix = "Leave dim out, and let batches have their samples along dimension 0."});
  }
  if (kwargs.bucket_cap_mb < 1) {
    throw InvalidArgument({.where = "DistributedDataParallelKwargs(bucket_cap_mb)",
                           .expected = "at least 1 MiB",
                           .got = fmt::format("{}", kwargs.bucket_cap_mb),
                           .fix = "Leave it out for buckets of 25 MiB."});
  }
  if (is_power_sgd(kwargs.comm_wrapper)) {
    throw InvalidArgument({.where = "DistributedDataParallelKwargs(comm_wrapper)",
                           .expected = "no, fp16 or bf16",
                           .got = "PowerSGD, which wraps no other hook",
                           .fix = "Pass it as comm_hook."});
  }
  if (is_power_sgd(kwargs.comm_hook)) require_valid(kwargs.comm_state_option);
}

}  // namespace lockstep::parallel
