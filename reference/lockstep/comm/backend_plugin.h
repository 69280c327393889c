/// What a shared library exports to be a communication backend of Lockstep: two C functions, and two more if it likes,
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

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

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

/// What Lockstep knows about a call that it is about to make on this thread and that c10d's arguments do not tell.
typedef struct lockstep_call_v1 {
  std::int64_t step;         ///< optimizer steps completed before
  std::int32_t micro_step;   ///< forward/backward passes since that step
  std::int32_t phase;        ///< 0 load, 1 forward, 2 backward, 3 step, 4 eval, 5 save, 6 other
  const char* label;         ///< names of the parameters that travel, one per line; may be empty
  const at::Tensor* inputs;  ///< the caller's own tensors, where those handed over are stand-ins or flat views
  std::size_t num_inputs;
} lockstep_call_v1;

/// A plug-in that watches over another backend instead of moving data itself. All functions may be called from any
/// thread, and none of them throws.
typedef struct lockstep_watcher_v1 {
  /// Like lockstep_backend_create_v1, over an inner backend that it makes by `make_inner` when it wants it. The options
  /// hold "ranks" too, the members' global ranks in group order. `make_inner` returns 0 when it has set the backend.
  int (*wrap)(const c10::intrusive_ptr<c10d::Store>* store, int rank, int size, const char* options_json,
              int (*make_inner)(void* context, c10::intrusive_ptr<c10d::Backend>* inner), void* context,
              c10::intrusive_ptr<c10d::Backend>* out, char* error, std::size_t error_size);
  /// Told before each call of a backend on the same thread, and with null after it.
  void (*set_call)(const lockstep_call_v1* call);
  /// This thread begins to wait for a key of the store; with null the wait is over.
  void (*wait_for_key)(const char* key);
  /// This rank fails by itself; the others shall know why.
  void (*fail)(const char* kind, const char* message, std::int64_t step);
  /// This rank's process ends well, and makes no further call.
  void (*leave)();
  /// A wait of this thread's that was not made through a work of the watcher's has failed: on a future, in c10d. Gives
  /// the watcher a moment to find out why.
  void (*await_verdict)();
  /// The verdict on the run as a JSON document, if one was reached: the number of its characters, 0 if there is none.
  /// Copies at most `size` of them.
  std::size_t (*verdict)(char* json, std::size_t size);
} lockstep_watcher_v1;

/// Optional: makes the plug-in a watcher.
typedef const lockstep_watcher_v1* (*lockstep_backend_watcher_v1_t)();

}  // extern "C"
