#pragma once

#include "lockstep/comm/process_group.h"

namespace torch::nn {
class Module;
}

namespace lockstep::parallel {

/// Compares names, shapes, dtypes and which are frozen, of the model's parameters and buffers over all ranks, in their
/// order.
/// @throws CollectiveMismatch  on every rank, naming the first parameter that differs and what each rank has
void verify_parameters(const torch::nn::Module& model, const comm::ProcessGroup& group);

}  // namespace lockstep::parallel
