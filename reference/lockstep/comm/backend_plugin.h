/// What a shared library exports to be a communication backend of Lockstep: two C functions, and a third if it likes,
/// over LibTorch's types.
///
/// This header needs LibTorch alone, and a plug-in links neither of Lockstep's libraries. The objects that cross the
/// border are C++, so both sides must use one LibTorch release, one libstdc++ and one C++11 ABI: the ABI string says so
/// and is compared before anything else. A plug-in is loaded with RTLD_LOCAL and never unloaded
/// (docs/adding_a_backend.md).
#pragma once

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cstddef>

#define LOCKSTEP_BACKEND_STRINGIFY_(x) #x
#define LOCKSTEP_BACKEND_STRINGIFY(x) LOCKSTEP_BACKEND_STRINGIFY_(x)

/// Interface number, LibTorch release, C++11 ABI.
#define LOCKSTEP_BACKEND_ABI "1;torch=" TORCH_VERSION ";cxx11=" LOCKSTEP_BACKEND_STRINGIFY(_GLIBCXX_USE_CXX11_ABI)

extern "C" {

/// Returns LOCKSTEP_BACKEND_ABI as the plug-in was compiled with it.
typedef const char* (*lockstep_backend_abi_v1_t)();

/// Makes one rank's end of a group. Never throws.
/// @param options_json  {"timeout_ms": 30000, "group": "world", "inner": "gloo", "inner_options": {}, "level": "full"}
/// @param error         receives the reason, zero-terminated, when nothing was made
/// @return 0 when `*out` was set
typedef int (*lockstep_backend_create_v1_t)(const c10::intrusive_ptr<c10d::Store>* store, int rank, int size,
                                            const char* options_json, c10::intrusive_ptr<c10d::Backend>* out,
                                            char* error, std::size_t error_size);

/// Optional. JSON: {"name": "...", "devices": ["cpu"], "ops": {"allreduce": {"dtypes": ["Float", ...],
/// "reduce_ops": ["sum", ...]}, ...}, "async": true, "tags": true, "groups": true}. dtypes are spelt as ATen does.
/// An operation that is not declared
/// is refused before it is called, and never judged; so are tags and groups that are declared false.
typedef const char* (*lockstep_backend_capabilities_v1_t)();

}  // extern "C"
