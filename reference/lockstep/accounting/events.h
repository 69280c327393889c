#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/accounting/phase.h"
#include "lockstep/base/export.h"

namespace lockstep::accounting {

/// Where in its run a rank emitted an event.
struct Stamp {
  int rank = 0;
  std::int64_t step = 0;        ///< optimizer steps completed before
  std::int64_t micro_step = 0;  ///< forward/backward passes since that step
  Phase phase = Phase::other;
};

/// One call of a collective or point-to-point operation, as it was posted.
/// `op` is c10d's name in snake case: allreduce, broadcast, allgather, reduce_scatter, alltoall, gather, scatter,
/// reduce, send, recv, barrier.
struct Collective {
  std::string op;
  std::string group;
  std::vector<int> ranks;     ///< the group's members, as global ranks
  std::uint64_t seq = 0;      ///< number of this call among the group's, counted from 1
  std::string dtype;          ///< as ATen spells it, for example "Float"; empty for a barrier
  std::int64_t elements = 0;  ///< of this rank's input
  std::int64_t bytes = 0;     ///< of this rank's input
  std::vector<std::vector<std::int64_t>> shapes;
  std::string reduce_op;  ///< sum, avg, ...; empty for operations that do not reduce
  int peer = -1;          ///< global rank of the root or the partner; -1: none
  int tag = 0;
  bool asynchronous = false;
  std::vector<std::string> label;  ///< names of the parameters that travel, where known
};

/// A batch was handed to the loop body.
struct Batch {
  std::string loader;
  std::vector<std::int64_t> indices;  ///< into the dataset, where known
  std::int64_t padding = 0;           ///< how many of them repeat others to fill the batch
};

struct EpochBegin {
  std::string loader;
  std::int64_t epoch = 0;
};

enum class Edge { begin, end };
struct Forward {
  Edge edge = Edge::begin;
};
struct Backward {
  Edge edge = Edge::begin;
  bool synchronising = true;  ///< gradients are reduced during this backward
};

/// Gradients of these parameters were handed to a reduction whose result is divided by `divisor`.
struct Reduced {
  std::vector<std::string> parameters;
  std::string group;
  int divisor = 1;
  std::int64_t bytes = 0;
};

struct Clipped {
  std::string by;    ///< "norm" or "value"
  double limit = 0;  ///< max_norm or clip_value
  double norm = 0;   ///< total norm before clipping; 0 when clipped by value
};

struct OptimizerStep {
  bool skipped = false;                ///< asked for, not done: the scaler found an infinity
  std::vector<double> learning_rates;  ///< per parameter group, those that the step used
};

struct SchedulerStep {
  std::vector<double> learning_rates;  ///< after the step
};

/// A generator's state was synchronised, seeded or restored.
struct GeneratorUse {
  std::string generator;
  std::string use;  ///< "seed", "synchronize", "restore"
};

struct RunBegin {
  int world_size = 1;
  std::string backend;
};

using Event = std::variant<RunBegin, EpochBegin, Batch, Forward, Backward, Collective, Reduced, Clipped, OptimizerStep,
                           SchedulerStep, GeneratorUse>;

/// The event's name in the stream: "run_begin", "batch", "collective", ... (docs/events.md)
LOCKSTEP_API std::string_view name_of(const Event& event);

/// One line of the event stream, without the line end: {"v": 1, "rank": 0, "step": 3, ..., "event": "batch", ...}
LOCKSTEP_API std::string to_json_line(const Stamp& stamp, const Event& event);

}  // namespace lockstep::accounting
