#include "lockstep/sim/place/own_modules.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace lockstep::sim {

std::vector<OwnModule> usual_own_modules() {
  std::vector<OwnModule> modules = {{.prefix = "liblockstep", .has_frame_pointers = true}};
  for (const char* prefix : {"libtorch", "libc10", "libstdc++", "libgcc_s", "libc.so", "libm.so", "libpthread",
                             "libgomp", "libgtest", "ld-linux"}) {
    modules.push_back({.prefix = prefix});
  }
  return modules;
}

namespace {

// Writers only; readers go through SegmentTable::current().
struct Registry {
  std::mutex mutex;
  std::vector<OwnModule> own = usual_own_modules();
  // Replaced tables are kept: a thread may be reading one. They are few and small.
  std::vector<std::unique_ptr<const SegmentTable>> tables;
};

// Never destroyed: ranks may still make calls while the process exits.
Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

std::uint64_t generation_of(const dl_phdr_info& info) { return info.dlpi_adds + info.dlpi_subs; }

std::uint64_t current_generation() {
  std::uint64_t generation = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t /*size*/, void* out) {
        *static_cast<std::uint64_t*>(out) = generation_of(*info);
        return 1;  // the first module knows
      },
      &generation);
  return generation;
}

Owner owner_of_module(const char* path, const std::vector<OwnModule>& own) {
  std::string_view name = path;
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  for (const OwnModule& module : own) {
    if (name.substr(0, module.prefix.size()) != module.prefix) continue;
    return module.has_frame_pointers ? Owner::own : Owner::own_without_pointers;
  }
  return Owner::user;
}

template <class Use>
void for_each_module(Use use) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t /*size*/, void* data) {
        (*static_cast<Use*>(data))(*info);
        return 0;
      },
      &use);
}

}  // namespace

std::atomic<const SegmentTable*> SegmentTable::current_{nullptr};

SegmentTable::SegmentTable(const std::vector<OwnModule>& own) {
  for_each_module([&](const dl_phdr_info& info) {
    generation_ = generation_of(info);
    const Owner owner = owner_of_module(info.dlpi_name, own);
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& header = info.dlpi_phdr[i];
      if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
      const std::uintptr_t begin = info.dlpi_addr + header.p_vaddr;
      segments_.push_back({.begin = begin, .end = begin + header.p_memsz, .owner = owner});
    }
  });
  if (segments_.empty()) segments_.emplace_back();
  std::sort(segments_.begin(), segments_.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
}

const SegmentTable& SegmentTable::first_look() noexcept {
  refresh_modules();
  return *current_.load(std::memory_order_acquire);
}

void set_own_modules(std::vector<OwnModule> modules) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.own = std::move(modules);
  all.tables.push_back(std::make_unique<SegmentTable>(all.own));
  SegmentTable::current_.store(all.tables.back().get(), std::memory_order_release);
}

void refresh_modules() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (!all.tables.empty() && all.tables.back()->generation() == current_generation()) return;
  all.tables.push_back(std::make_unique<SegmentTable>(all.own));
  SegmentTable::current_.store(all.tables.back().get(), std::memory_order_release);
}

}  // namespace lockstep::sim
