#include "lockstep/state/placement.h"

#include <array>
#include <initializer_list>

#include "lockstep/base/error.h"
#include "lockstep/comm/backend_name.h"

namespace lockstep::state {
namespace {

using Names = std::initializer_list<const char*>;

const Names kRank = {"RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK"};
const Names kSize = {"WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"};
const Names kLocalRank = {"LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK"};
const Names kLocalSize = {"LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE",
                          "MV2_COMM_WORLD_LOCAL_SIZE"};
constexpr int kDefaultPort = 29500;

constexpr const char* kWhere = "RANK and WORLD_SIZE";

// A negative number counts as unset, as torchrun's LOCAL_RANK=-1 does.
std::optional<int> first_set(const Environment& environment, Names names) {
  for (const char* name : names) {
    if (const auto value = environment.number(name); value && *value >= 0) return value;
  }
  return std::nullopt;
}

bool mentions_any(const Environment& environment, std::initializer_list<std::string_view> prefixes) {
  for (const auto& [name, value] : environment.variables()) {
    for (const auto prefix : prefixes) {
      if (name.starts_with(prefix)) return true;
    }
  }
  return false;
}

// Slurm's variables count only where no launcher has set its own, and only inside a job step of several tasks: a shell
// in an allocation has them too.
bool is_slurm_step(const Environment& environment) {
  return !environment.find("RANK") && !mentions_any(environment, {"PMI_", "OMPI_", "MV2_"}) &&
         environment.number("SLURM_NTASKS").value_or(0) > 1 && environment.find("SLURM_STEP_ID");
}

Environment with_slurm(const Environment& environment) {
  if (!is_slurm_step(environment)) return environment;
  Environment translated = environment;
  const std::array<std::pair<const char*, const char*>, 3> names = {
      {{"SLURM_PROCID", "RANK"}, {"SLURM_NTASKS", "WORLD_SIZE"}, {"SLURM_LOCALID", "LOCAL_RANK"}}};
  for (const auto& [slurm, torchrun] : names) {
    if (const auto value = environment.find(slurm)) translated.set(torchrun, *value);
  }
  return translated;
}

// A rank without a world would train alone beside the others, who each do the same.
World world_of(std::optional<int> rank, std::optional<int> size) {
  if (rank.value_or(0) > 0 && !size) {
    throw InvalidArgument({.where = kWhere,
                           .expected = "a world size beside a rank above 0",
                           .got = "rank " + std::to_string(*rank) + " and no world size",
                           .fix = "Set WORLD_SIZE to the number of ranks, or unset RANK to run alone."});
  }
  return checked({.rank = rank.value_or(0), .size = size.value_or(1)}, kWhere);
}

// Several processes without a rank would all be rank 0, and wait for the others until the time-out.
void require_rank(std::optional<int> rank, World world) {
  if (rank || world.size == 1) return;
  throw InvalidArgument({.where = kWhere,
                         .expected = "a rank in a world of " + std::to_string(world.size),
                         .got = "none (a negative one counts as unset)",
                         .fix = "Set RANK to this process's number, from 0 to " + std::to_string(world.size - 1) +
                                ", or unset WORLD_SIZE to run alone."});
}

Rendezvous rendezvous_of(const Environment& environment, const Placement& placement) {
  Rendezvous rendezvous;
  if (const auto file = environment.find("ACCELERATE_DEBUG_RDV_FILE")) rendezvous.file = *file;
  const auto host = environment.find("MASTER_ADDR");
  if (!host && rendezvous.file.empty() && placement.local.size != placement.world.size) {
    throw InvalidArgument({.where = "rendezvous",
                           .expected = "MASTER_ADDR, since the world of " + std::to_string(placement.world.size) +
                                       " is larger than the " + std::to_string(placement.local.size) +
                                       " of this machine (LOCAL_WORLD_SIZE)",
                           .got = "no MASTER_ADDR",
                           .fix = "Set MASTER_ADDR to the address of rank 0, or LOCAL_WORLD_SIZE to WORLD_SIZE."});
  }
  rendezvous.host = host.value_or("127.0.0.1");
  rendezvous.port = environment.number("MASTER_PORT").value_or(kDefaultPort);
  if (rendezvous.port == 0 && rendezvous.file.empty() && placement.world.size > 1) {
    throw InvalidArgument({.where = "rendezvous",
                           .expected = "a port that all ranks know",
                           .got = "MASTER_PORT 0: rank 0 would choose one, and nobody would find it",
                           .fix = "Set MASTER_PORT to a free port, from 1 to 65535, on every rank."});
  }
  // Under torchrun the agent runs the store, and every rank is its client.
  rendezvous.hosted_here = placement.world.rank == 0 && !environment.flag("TORCHELASTIC_USE_AGENT_STORE");
  return rendezvous;
}

std::string backend_of(const Environment& environment, const PlacementRequest& request, bool on_cpu) {
  const std::string standard = on_cpu ? "gloo" : "nccl";
  if (request.backend && *request.backend != standard) {
    throw InvalidArgument({.where = "backend",
                           .expected = "'" + standard + "', which fits the device",
                           .got = "'" + *request.backend + "'",
                           .fix = "Leave it out, or set LOCKSTEP_BACKEND to force another one."});
  }
  return environment.flag("LOCKSTEP_SIM") ? "checked:" + standard : standard;
}

}  // namespace

std::string_view to_word(DistributedType type) {
  switch (type) {
    case DistributedType::no: return "NO";
    case DistributedType::multi_cpu: return "MULTI_CPU";
    case DistributedType::multi_gpu: return "MULTI_GPU";
  }
  return "";
}

std::optional<std::string> chosen_backend(const Environment& environment) {
  auto name = environment.find("LOCKSTEP_BACKEND");
  if (name) comm::check_backend_name(*name);
  return name;
}

std::vector<std::string> rank_variables() {
  std::vector<std::string> names = {"MASTER_PORT"};
  for (const auto& row : {kRank, kSize, kLocalRank, kLocalSize}) names.insert(names.end(), row.begin(), row.end());
  return names;
}

std::string attempt_prefix(const Environment& environment) {
  return "attempt" + environment.find("TORCHELASTIC_RESTART_COUNT").value_or("0");
}

Placement place(const Environment& process, const PlacementRequest& request) {
  const auto environment = with_slurm(process);
  const bool cpu_asked = request.cpu || environment.flag("ACCELERATE_USE_CPU");
  const bool has_local_rank = environment.number("LOCAL_RANK").value_or(-1) >= 0;
  const auto rank = first_set(environment, kRank);
  const auto size = first_set(environment, kSize);
  // Asked for by a process that is alone, too: it has no use for a backend, but its next run on several ranks would.
  const auto backend = chosen_backend(environment);
  const auto world = world_of(rank, size);

  Placement placement;
  placement.on_cpu = cpu_asked || request.num_devices == 0;  // without an accelerator the CPU counts as asked for
  const bool is_distributed = has_local_rank || (placement.on_cpu && world.size > 1);
  if (!is_distributed) return placement;

  placement.type = placement.on_cpu ? DistributedType::multi_cpu : DistributedType::multi_gpu;
  placement.world = world;
  placement.local = {.rank = first_set(environment, kLocalRank).value_or(0),
                     .size = first_set(environment, kLocalSize).value_or(1)};
  placement.rendezvous = rendezvous_of(environment, placement);
  require_rank(rank, world);  // after the address, which a WORLD_SIZE alone lacks too (STATE-004)
  const std::string standard = placement.on_cpu ? "gloo" : "nccl";
  placement.backend =
      backend ? comm::with_inner(*backend, standard) : backend_of(environment, request, placement.on_cpu);
  return placement;
}

}  // namespace lockstep::state
