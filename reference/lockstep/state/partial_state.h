#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/export.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/state/placement.h"
#include "lockstep/state/rank_context.h"
#include "lockstep/value/value.h"

namespace lockstep::state {

struct PartialStateOptions {
  bool cpu = false;                    ///< CPU even where there is an accelerator; combines with several processes
  std::optional<std::string> backend;  ///< must be the one that fits the device
  std::optional<std::chrono::milliseconds> timeout;  ///< how long to wait for peers; else LOCKSTEP_TIMEOUT, else 30 min
};

/// The rank's place among the others, and control over who does what. The first construction on a rank makes the world
/// (and blocks until all ranks are there); each later one is a handle to the same, and its options are ignored.
///
/// @clause STATE-001..010, 101, 102, 104..109, 115, 130..140
/// @source Accelerate, PartialState
class LOCKSTEP_API PartialState {
 public:
  /// @throws Timeout          naming the ranks that never arrived
  /// @throws InvalidArgument  for a timeout that is not positive, and as place() does
  explicit PartialState(const PartialStateOptions& options = {});

  [[nodiscard]] int num_processes() const;
  [[nodiscard]] int process_index() const;
  [[nodiscard]] int local_process_index() const;
  [[nodiscard]] bool is_main_process() const { return process_index() == 0; }
  [[nodiscard]] bool is_local_main_process() const { return local_process_index() == 0; }
  [[nodiscard]] bool is_last_process() const { return process_index() == num_processes() - 1; }
  [[nodiscard]] bool use_distributed() const;
  [[nodiscard]] DistributedType distributed_type() const;
  [[nodiscard]] std::optional<std::string> backend() const;  ///< none without a group
  [[nodiscard]] at::Device device() const;
  [[nodiscard]] bool debug() const;          ///< ACCELERATE_DEBUG_MODE: collectives check shapes first
  [[nodiscard]] bool fork_launched() const;  ///< FORK_LAUNCHED
  [[nodiscard]] bool initialized() const;    ///< false after reset()

  /// All ranks; no group for a single process.
  [[nodiscard]] const comm::ProcessGroup& world_group() const;
  [[nodiscard]] RankContext& rank() const;

  /// Blocks until all ranks are here; nothing for a single process.
  void wait_for_everyone() const;

  /// Prints a line on each local main process.
  void print(std::string_view line) const;

  /// This rank's share of a list, tuple, tensor (dim 0) or dict of them (STATE-135..140). A copy of the input's parts;
  /// with one process the very input.
  /// @param apply_padding  fill every share to the longest with the last element of the whole input; split tensors are
  /// then
  ///                       moved to the device
  [[nodiscard]] Value split_between_processes(const Value& inputs, bool apply_padding = false) const;

  /// Ends the world of this rank: nobody waits for it afterwards. No effect when FORK_LAUNCHED (STATE-114).
  void destroy_process_group();
  /// Forgets the state; the process group lives on for those who hold it (STATE-112).
  static void reset();

  /// The five lines of STATE-115.
  [[nodiscard]] std::string to_text() const;

 private:
  std::shared_ptr<RankContext> rank_;
};

/// What the handles share.
struct PartialStateData {
  Placement placement;
  at::Device device = at::kCPU;
  comm::ProcessGroup group;
  std::shared_ptr<comm::FailureBoard> failures;
  std::optional<comm::Store> store;
  bool is_reset = false;  ///< forgotten by the user; the ranks still know each other
};

/// Whether the rank has a state that was not reset.
bool is_set_up(const RankContext& rank);

}  // namespace lockstep::state
