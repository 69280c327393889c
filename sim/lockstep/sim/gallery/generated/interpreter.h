#pragma once

#include <string>

#include "lockstep/sim/gallery/generated/program.h"
#include "lockstep/sim/rank.h"

namespace lockstep::sim::generated {

/// Does what the program says for this rank, through the same functions as any user's program.
///
/// Every tensor is of ones; reduce_scatter and all_to_all pass a part of the call's shape for each rank, one after the
/// other in the first dim. All tensors live until the end, so that a label never outlives its tensor.
/// @throws std::runtime_error  where the program says that the rank fails; what the library throws, a verdict too
void run_program(Rank& rank, const Program& program);

/// The same for a program in a file: the function of a gallery that is started with `--program FILE`.
/// @throws std::invalid_argument  when there is no such file, or no program in it, or one for another world size
void run_generated(Rank& rank, const std::string& program_json_path);

}  // namespace lockstep::sim::generated
