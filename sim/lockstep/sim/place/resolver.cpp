#include "lockstep/sim/place/resolver.h"

#include <string_view>
#include <utility>

#include "lockstep/sim/place/function_name.h"

namespace lockstep::sim {

namespace {

using std::string_view;

bool contains(string_view text, string_view part) { return text.find(part) != string_view::npos; }

bool ends_with(string_view text, string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// The gallery and the tests stand among our sources, but are programs as users write them.
bool is_own_source(string_view file) {
  if (contains(file, "/sim/lockstep/sim/gallery/") || ends_with(file, "_test.cpp")) return false;
  for (string_view folder : {"/reference/lockstep/", "/sim/lockstep/", "/include/lockstep/"}) {
    if (contains(file, folder)) return true;
  }
  return false;
}

bool is_system_library(string_view path) {
  for (string_view folder : {"/usr/lib", "/lib/", "/lib64/"}) {
    if (path.substr(0, folder.size()) == folder) return true;
  }
  return false;
}

}  // namespace

bool is_library_source(const std::string& file) {
  if (is_own_source(file)) return true;
  for (string_view folder : {"/torch/include/", "/ATen/", "/c10/", "/include/c++/", "/usr/include/", "/bits/"}) {
    if (contains(file, folder)) return true;
  }
  return false;
}

// What an address turned out to be.
struct PlaceResolver::Sighting {
  enum class Kind {
    user,     // the user's own code
    unknown,  // a module without line tables, perhaps the user's
    library   // nobody would look for the cause here
  };
  Kind kind = Kind::unknown;
  Place place;
};

PlaceResolver::PlaceResolver(std::filesystem::path base) : base_(std::move(base)) {}

std::optional<Place> PlaceResolver::resolve(const ModuleTable& modules, const Frames& frames) {
  std::optional<Place> last_resort;
  for (int i = 0; i < frames.count && i < Frames::kMax; ++i) {
    // A return address may be the first of the next line; the byte before belongs to the call.
    const auto address = modules.find(frames.addresses[static_cast<std::size_t>(i)] - 1);
    if (!address) continue;
    Sighting sighting = look_at(*address);
    if (sighting.kind != Sighting::Kind::library) return std::move(sighting.place);
    // The last of them is nearest to the user's code.
    last_resort = std::move(sighting.place);
  }
  return last_resort;
}

PlaceResolver::Sighting PlaceResolver::look_at(const ModuleAddress& address) {
  using Kind = Sighting::Kind;
  const MappedModule& module = *address.module;
  Sighting sighting;
  Place& place = sighting.place;
  place.module = std::filesystem::path(module.path).filename();
  place.offset = address.file_offset;
  const DebugFile* file = file_of(module);
  if (file == nullptr) {
    place.remark = "its file is gone, or was replaced while the program ran";
    return sighting;
  }
  place.offset = file->address_of(address.file_offset);
  const auto lines = file->lines_at(place.offset);
  if (lines.empty()) {
    sighting.kind = is_system_library(module.path) ? Kind::library : Kind::unknown;
    place.function = short_function_name(file->symbol_at(place.offset));
    return sighting;
  }
  const SourceLine* line = &lines.front();
  while (line != &lines.back() && is_library_source(line->file)) ++line;
  sighting.kind = is_library_source(line->file) ? Kind::library : Kind::user;
  place.file = shown(line->file);
  place.line = line->line;
  place.function = line->function;
  return sighting;
}

const DebugFile* PlaceResolver::file_of(const MappedModule& module) {
  if (module.stamp.size == 0 || stamp_of(module.path) != module.stamp) return nullptr;
  const auto [entry, is_new] = files_.try_emplace({module.path, module.stamp});
  if (is_new) entry->second = DebugFile::open(module.path);
  return entry->second.get();
}

std::string PlaceResolver::shown(const std::string& file) const {
  const std::filesystem::path path = file;
  const auto relative = path.lexically_relative(base_);
  if (!relative.empty() && *relative.begin() != "..") return relative.string();
  return (path.parent_path().filename() / path.filename()).string();
}

}  // namespace lockstep::sim
