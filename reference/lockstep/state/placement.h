#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/base/world.h"
#include "lockstep/state/distributed_type.h"
#include "lockstep/state/environment.h"

namespace lockstep::state {

/// Where a process finds the others: a file, or an address.
struct Rendezvous {
  std::string file;  ///< for ranks of one machine; empty: use the address
  std::string host = "127.0.0.1";
  int port = 29500;
  bool hosted_here = false;  ///< this process runs the store's server
};

/// How a process recognises where it is.
struct Placement {
  DistributedType type = DistributedType::no;
  World world;
  World local;  ///< among the ranks of this machine
  bool on_cpu = true;
  std::string backend;  ///< empty for a single process
  Rendezvous rendezvous;
};

struct PlacementRequest {
  bool cpu = false;                    ///< as the caller asked; ACCELERATE_USE_CPU does the same
  std::optional<std::string> backend;  ///< as the caller asked
  int num_devices = 0;                 ///< accelerators that this machine offers
};

/// A pure function of the environment: torchrun's variables first, then PMI's, Open MPI's, MVAPICH's and Slurm's.
///
/// @throws InvalidArgument  for a world size below 1, a rank outside the world, one of the two without the other, a
///                          world on several machines without MASTER_ADDR, or a backend that is unknown or does not fit
/// @clause STATE-001..004, 006, 008, 104, 106..108
LOCKSTEP_API Placement place(const Environment& environment, const PlacementRequest& request);

/// LOCKSTEP_BACKEND, if it is set. @throws InvalidArgument when it is misspelt
LOCKSTEP_API std::optional<std::string> chosen_backend(const Environment& environment);

/// Names of the variables that tell a rank its numbers: all rows of STATE-003, and MASTER_PORT.
LOCKSTEP_API std::vector<std::string> rank_variables();

/// Prefix of the keys of this attempt at the job. A restarted attempt under torchrun meets in the same store, and what
/// the attempt before left there is not its own.
LOCKSTEP_API std::string attempt_prefix(const Environment& environment);

}  // namespace lockstep::state
