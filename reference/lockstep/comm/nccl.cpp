#include "lockstep/base/error.h"
#include "lockstep/comm/backend_makers.h"
#include "lockstep/comm/rendezvous_store.h"

#ifdef USE_C10D_NCCL

#include <c10/cuda/CUDAFunctions.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace lockstep::comm {

MadeBackend make_nccl(const BackendRequest& request) {
  if (c10::cuda::device_count() == 0) {
    throw NotSupported({.where = "backend nccl",
                        .expected = "a CUDA device for each rank",
                        .got = "none",
                        .fix = "Set ACCELERATE_USE_CPU=1, or use the gloo backend."});
  }
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = request.timeout;
  return {.backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(rendezvous_store(request), request.world.rank,
                                                                 request.world.size, options),
          .capabilities = Capabilities()};
}

}  // namespace lockstep::comm

#else

namespace lockstep::comm {

MadeBackend make_nccl(const BackendRequest&) {
  throw NotSupported({.where = "backend nccl",
                      .expected = "a build with GPU support",
                      .got = "a CPU build",
                      .fix = "Configure with -DLOCKSTEP_GPU=ON, or use the gloo backend."});
}

}  // namespace lockstep::comm

#endif
