#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <optional>

#include "lockstep/comm/process_group.h"
#include "lockstep/data/data_loader.h"

namespace lockstep::data {

struct DispatchOptions {
  std::optional<at::Device> device;  ///< where the tensors are sent from and arrive; unset: where rank 0 has them, and
                                     ///< the CPU elsewhere
  bool non_blocking = false;
};

/// Hands what rank 0 of the group reads to all its ranks: first, as an object, what comes (structure, shapes and dtypes
/// of a batch, the end, or a failure), then each tensor.
///
/// @param read   called on rank 0 alone; what it throws is thrown there, and on the other ranks an Error of that kind
///               with its message: none of them waits for data that will not come (DATA-092, accepted outcome)
/// @param group  none: a job of one process, where `read` is called and nothing is sent
/// @return the batch, the same on every rank; empty at the end
/// @throws TypeError  on every rank, if a leaf is no tensor and the group has more than one rank (DATA-093)
/// @clause DATA-080, 081, 091..093
std::optional<LoadedBatch> dispatch(const std::function<std::optional<LoadedBatch>()>& read,
                                    const comm::ProcessGroup& group, const DispatchOptions& options);

}  // namespace lockstep::data
