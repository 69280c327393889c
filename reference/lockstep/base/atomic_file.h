#pragma once

#include <filesystem>
#include <string_view>

#include "lockstep/base/export.h"

namespace lockstep {

/// Gives a file that was written aside its name, once its bytes are on the disk: whoever sees the name sees all of it.
/// @throws FileError
LOCKSTEP_API void put_in_place(const std::filesystem::path& aside, const std::filesystem::path& path);

/// Writes a whole file in that way, as PATH.part, in a folder that exists.
/// @throws FileError
LOCKSTEP_API void write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace lockstep
