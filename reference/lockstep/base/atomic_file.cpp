#include "lockstep/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw FileError({.where = path.string(),
                   .expected = "to write it",
                   .got = std::strerror(error),
                   .fix = "Make its folder writable, or choose another."});
}

void flush_to_disk(const std::filesystem::path& path, int flags) {
  const int file = open(path.c_str(), flags | O_CLOEXEC);
  if (file < 0) fail(path, errno);
  const int error = fsync(file) == 0 ? 0 : errno;
  close(file);
  if (error != 0) fail(path, error);
}

}  // namespace

void put_in_place(const std::filesystem::path& aside, const std::filesystem::path& path) {
  flush_to_disk(aside, O_WRONLY);
  if (std::rename(aside.c_str(), path.c_str()) != 0) fail(path, errno);
  const auto folder = path.parent_path();
  flush_to_disk(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path aside = path.string() + ".part";
  std::ofstream file(aside, std::ios::binary);
  file << content;
  file.close();
  if (!file) fail(aside, errno);
  put_in_place(aside, path);
}

}  // namespace lockstep
