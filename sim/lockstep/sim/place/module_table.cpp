#include "lockstep/sim/place/module_table.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <locale>
#include <sstream>
#include <system_error>
#include <utility>

namespace lockstep::sim {

namespace {

constexpr std::string_view kDeleted = " (deleted)";

// Cuts the next word off the front of `line`.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

template <class Number>
bool read_hex(std::string_view word, Number& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, 16);
  return error == std::errc() && end == word.data() + word.size();
}

std::string_view take_path(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return line;
}

// A line of /proc/self/maps: "begin-end perms offset dev inode   path". Nothing unless it is a file's code.
std::optional<MappedModule> read_mapping(std::string_view line) {
  MappedModule module;
  const std::string_view range = take_word(line);
  const auto dash = range.find('-');
  if (dash == std::string_view::npos || !read_hex(range.substr(0, dash), module.begin) ||
      !read_hex(range.substr(dash + 1), module.end)) {
    return std::nullopt;
  }
  const std::string_view permissions = take_word(line);
  if (permissions.size() < 3 || permissions[2] != 'x') return std::nullopt;
  if (!read_hex(take_word(line), module.file_offset)) return std::nullopt;
  take_word(line);  // device
  take_word(line);  // inode
  std::string_view path = take_path(line);
  if (path.empty() || path.front() != '/') return std::nullopt;
  const bool is_deleted = path.size() > kDeleted.size() && path.substr(path.size() - kDeleted.size()) == kDeleted;
  if (is_deleted) path.remove_suffix(kDeleted.size());
  module.path = path;
  if (!is_deleted) module.stamp = stamp_of(module.path).value_or(FileStamp{});
  return module;
}

std::optional<MappedModule> read_line(std::string_view line) {
  MappedModule module;
  if (!read_hex(take_word(line), module.begin) || !read_hex(take_word(line), module.end) ||
      !read_hex(take_word(line), module.file_offset) || !read_hex(take_word(line), module.stamp.size) ||
      !read_hex(take_word(line), module.stamp.modified_ns)) {
    return std::nullopt;
  }
  module.path = take_path(line);
  return module.path.empty() ? std::nullopt : std::optional(std::move(module));
}

}  // namespace

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  const std::int64_t modified_ns = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec;
  return FileStamp{.size = static_cast<std::uint64_t>(status.st_size),
                   .modified_ns = static_cast<std::uint64_t>(modified_ns)};
}

std::string own_module_table() {
  std::ifstream maps("/proc/self/maps");
  std::ostringstream table;
  table.imbue(std::locale::classic());  // the program's own may group digits
  table << std::hex;
  for (std::string line; std::getline(maps, line);) {
    const auto module = read_mapping(line);
    if (!module) continue;
    table << module->begin << ' ' << module->end << ' ' << module->file_offset << ' ' << module->stamp.size << ' '
          << module->stamp.modified_ns << ' ' << module->path << '\n';
  }
  return table.str();
}

ModuleTable ModuleTable::parse(std::string_view text) {
  ModuleTable table;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (auto module = read_line(text.substr(0, end))) table.modules_.push_back(std::move(*module));
    text.remove_prefix(end + 1);
  }
  std::sort(table.modules_.begin(), table.modules_.end(),
            [](const MappedModule& a, const MappedModule& b) { return a.begin < b.begin; });
  return table;
}

std::optional<ModuleAddress> ModuleTable::find(std::uintptr_t address) const {
  const auto after = std::upper_bound(modules_.begin(), modules_.end(), address,
                                      [](std::uintptr_t wanted, const MappedModule& m) { return wanted < m.begin; });
  if (after == modules_.begin()) return std::nullopt;
  const MappedModule& module = *std::prev(after);
  if (address >= module.end) return std::nullopt;
  return ModuleAddress{.module = &module, .file_offset = address - module.begin + module.file_offset};
}

}  // namespace lockstep::sim
