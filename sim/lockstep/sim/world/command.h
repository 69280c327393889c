#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::sim {

/// The file that `name` stands for: itself if it has a slash, else the first executable of that name along `path`, a
/// list as in PATH.
/// @throws InvalidArgument  if there is none, or it is no program that we may run
std::string find_program(const std::string& name, const std::string& path);

/// The name of the launcher that this command is ("torchrun", "python -m torch.distributed.run"), which starts ranks by
/// itself; none for any other program.
std::optional<std::string> known_launcher(const std::vector<std::string>& argv);

}  // namespace lockstep::sim
