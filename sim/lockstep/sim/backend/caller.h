#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/sim/check/call.h"
#include "lockstep/sim/place/capture.h"

/// What the checked operations ask of the adapter that they are linked into: C++ (cpp_caller.cpp) or Python
/// (python/lockstep/csrc/python_caller.cpp).
namespace lockstep::sim {

/// What is known of the call that a thread is about to make.
struct Caller {
  Context context;
  const at::Tensor* inputs = nullptr;  ///< the caller's own tensors, where those handed over are flat or stand-ins
  std::size_t num_inputs = 0;
};

/// Describes the calling thread's call with these tensors. Asked at every call, so it has to be quick.
/// @param frames  room for return addresses, which the result may view
Caller describe_caller(const std::vector<at::Tensor>& tensors, Frames& frames);

/// Where the calling thread begins to wait. @param frames  as above
CallSite site_of_wait(Frames& frames);

}  // namespace lockstep::sim
