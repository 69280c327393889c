#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::sim {

/// A line of source that an address belongs to. `file` is the path that the compiler was given, made absolute.
struct SourceLine {
  std::string file;
  int line = 0;
  std::string function;  ///< as short_function_name() gives it; may be empty
};

/// The ELF file of a module, with its symbols and DWARF line tables. Read with pread: a file that is cut short under
/// our hands gives no answers, and no signal.
class DebugFile {
 public:
  /// Nothing when the file cannot be read or is no ELF file.
  static std::unique_ptr<DebugFile> open(const std::string& path);
  ~DebugFile();
  DebugFile(const DebugFile&) = delete;
  DebugFile& operator=(const DebugFile&) = delete;

  /// The ELF address of what the file holds at `file_offset`.
  [[nodiscard]] std::uint64_t address_of(std::uint64_t file_offset) const;

  /// The lines that an address stands for, innermost first: that of the instruction, then the call sites of the
  /// functions that were inlined around it. Empty without line tables.
  [[nodiscard]] std::vector<SourceLine> lines_at(std::uint64_t address) const;

  /// Linkage name of the function at an address, from the symbol table; empty if there is none.
  [[nodiscard]] std::string symbol_at(std::uint64_t address) const;

 private:
  struct Content;
  explicit DebugFile(std::unique_ptr<Content> content);

  std::unique_ptr<Content> content_;
};

}  // namespace lockstep::sim
