#pragma once

#include <cstdint>
#include <string>

namespace lockstep::sim {

/// Where in the user's own code a rank stands: `file` and `line` where the module has line tables, otherwise the
/// module and the offset in it.
struct Place {
  std::string file;          ///< relative to the current directory when below it; empty without line tables
  int line = 0;              ///< valid when `file` is set
  std::string function;      ///< qualified, without arguments: "digits::step", "lambda in train"; may be empty
  std::string module;        ///< base name of the program or library
  std::uint64_t offset = 0;  ///< ELF address in `module`, as addr2line and nm take it
  std::string remark;        ///< why there is no file, and what to do, where that is known better than "build with -g1"

  bool operator==(const Place&) const = default;
};

/// "train.cpp:41 (step)", or "train+0x1234 (step)" where the line is not known.
std::string to_short_text(const Place& place);

/// The same, and how to get the line: "train+0x1234 (step; build with -g1 for file and line)".
std::string to_text(const Place& place);

}  // namespace lockstep::sim
