#include "lockstep/base/world.h"

#include "lockstep/base/error.h"

namespace lockstep {

World checked(World world, const std::string& where) {
  if (world.size < 1) {
    throw InvalidArgument({.where = where,
                           .expected = "a world size of at least 1",
                           .got = "world size " + std::to_string(world.size),
                           .fix = "Set WORLD_SIZE (or num_processes) to the number of ranks that take part."});
  }
  if (world.rank < 0 || world.rank >= world.size) {
    throw InvalidArgument({.where = where,
                           .expected = "a rank from 0 to " + std::to_string(world.size - 1),
                           .got = "rank " + std::to_string(world.rank) + " in a world of " + std::to_string(world.size),
                           .fix = "Give each process its own RANK, counted from 0, below WORLD_SIZE."});
  }
  return world;
}

std::string to_text(World world) { return "rank " + std::to_string(world.rank) + " of " + std::to_string(world.size); }

}  // namespace lockstep
