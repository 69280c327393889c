#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sim {

/// What identifies the file of a module: when it differs, the file was replaced after the process had loaded it.
struct FileStamp {
  std::uint64_t size = 0;  ///< 0: the file was gone or replaced already when the table was made
  std::uint64_t modified_ns = 0;

  auto operator<=>(const FileStamp&) const = default;
};

/// An executable mapping of a file.
struct MappedModule {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uint64_t file_offset = 0;  ///< of `begin`
  FileStamp stamp;
  std::string path;
};

/// An address of a process, as a position in the file that it was loaded from.
struct ModuleAddress {
  const MappedModule* module = nullptr;  ///< lives as long as the table
  std::uint64_t file_offset = 0;
};

/// The executable mappings of a process, so that another process can resolve its addresses after it has died.
class ModuleTable {
 public:
  /// Takes what own_module_table() wrote. Lines that it does not understand, and a last line that was cut short, are
  /// passed over: their addresses are found nowhere.
  static ModuleTable parse(std::string_view text);

  [[nodiscard]] std::optional<ModuleAddress> find(std::uintptr_t address) const;
  [[nodiscard]] const std::vector<MappedModule>& modules() const noexcept { return modules_; }

 private:
  std::vector<MappedModule> modules_;  // by begin
};

/// The calling process's table as text: a line "begin end file_offset size modified_ns path" per mapping, numbers in
/// hexadecimal; some kilobytes for a program on LibTorch. Make it anew after a dlopen.
std::string own_module_table();

/// The file's stamp, nothing if it cannot be read.
std::optional<FileStamp> stamp_of(const std::string& path);

}  // namespace lockstep::sim
