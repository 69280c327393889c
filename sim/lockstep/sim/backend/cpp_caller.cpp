#include "lockstep/sim/backend/cpp_caller.h"

#include <array>

#include "lockstep/sim/place/module_table.h"
#include "lockstep/sim/place/own_modules.h"

namespace lockstep::sim {

thread_local Caller next_call;

namespace {

// Of the innermost frame, the same in every process of the program; 0: not known.
std::uint64_t hash_of(std::uintptr_t address) {
  static const auto& modules = *new ModuleTable(ModuleTable::parse(modules_of_process()));
  const auto found = modules.find(address);
  if (!found || found->module == nullptr) return 0;
  return mix(mix(0, found->module->path), found->file_offset) | 1;
}

// A program makes its calls from a few places, again and again.
std::uint64_t place_hash(const Frames& frames) {
  struct Known {
    std::uintptr_t address = 0;
    std::uint64_t hash = 0;
  };
  thread_local std::array<Known, 64> cache;
  if (frames.count == 0) return 0;
  const auto address = frames.addresses[0];
  auto& known = cache[mix(0, address) % cache.size()];
  if (known.address != address) known = {.address = address, .hash = hash_of(address)};
  return known.hash;
}

CallSite site_of(const Frames& frames) {
  return {.frames = {frames.addresses.data(), static_cast<std::size_t>(frames.count)}};
}

}  // namespace

const std::string& modules_of_process() {
  static const auto& table = *new std::string([] {
    refresh_modules();
    return own_module_table();
  }());
  return table;
}

Caller describe_caller(const std::vector<at::Tensor>&, Frames& frames) {
  // The cheap walk finds nothing below LibTorch's frames, which keep no frame pointers (a bucket of DDP): then the
  // exact one is worth its time, which is little beside that of a bucket.
  frames = capture_frames();
  if (frames.count == 0 || !frames.is_exact) frames = unwind_frames();
  auto caller = next_call;
  caller.context.site = site_of(frames);
  caller.context.site.hash = place_hash(frames);
  return caller;
}

CallSite site_of_wait(Frames& frames) {
  frames = capture_frames();
  return site_of(frames);
}

}  // namespace lockstep::sim
