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

/// Whether Python runs here, as far as the words tell: an interpreter, a script, or a launcher of scripts.
bool looks_like_python(const std::vector<std::string>& argv);

/// `python [options] script ...` and `python [options] -m module ...` with pdb between the options and what is run.
/// @throws InvalidArgument  for any other command
std::vector<std::string> under_pdb(const std::vector<std::string>& argv);

}  // namespace lockstep::sim
