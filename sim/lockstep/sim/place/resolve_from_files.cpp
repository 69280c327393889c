#include "lockstep/sim/place/resolve_from_files.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "lockstep/sim/place/module_table.h"
#include "lockstep/sim/place/resolver.h"

namespace lockstep::sim {

ResolvePlace resolve_from_files() {
  return [resolver = std::make_shared<PlaceResolver>(), guard = std::make_shared<std::mutex>()](
             std::string_view table, std::span<const std::uint64_t> addresses) -> PlaceText {
    const std::lock_guard lock(*guard);
    Frames frames;
    frames.count = static_cast<int>(std::min<std::size_t>(addresses.size(), Frames::kMax));
    std::copy_n(addresses.begin(), frames.count, frames.addresses.begin());
    const auto place = resolver->resolve(ModuleTable::parse(table), frames);
    if (!place) return {};
    if (place->file.empty()) return {.file = to_text(*place)};
    return {.file = place->file, .line = place->line, .function = place->function};
  };
}

}  // namespace lockstep::sim
