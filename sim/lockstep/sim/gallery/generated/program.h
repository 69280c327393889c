#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sim::generated {

/// What a call does. Those that communicate are the functions of comm::ProcessGroup.
enum class Action : std::uint8_t {
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  reduce,
  barrier,
  send,
  receive,
  wait,  ///< for the asynchronous calls made at the line `awaited`; if there are none, it does nothing
  store_set,
  store_wait,
  leave,  ///< the rank returns from its program
  fail,   ///< the rank throws
};
std::string_view to_word(Action action);

enum class Dtype : std::uint8_t { float32, float64, int32, int64 };
std::string_view to_word(Dtype dtype);

enum class Reduction : std::uint8_t { sum, product, min, max };
std::string_view to_word(Reduction reduction);

constexpr bool is_collective(Action action) { return action <= Action::barrier; }
constexpr bool is_point_to_point(Action action) { return action == Action::send || action == Action::receive; }
/// Whether it is one of those that the checker compares with the peers'.
constexpr bool is_checked(Action action) { return is_collective(action) || is_point_to_point(action); }
constexpr bool has_tensor(Action action) { return is_checked(action) && action != Action::barrier; }
constexpr bool has_root(Action action) {
  return action == Action::broadcast || action == Action::gather || action == Action::scatter ||
         action == Action::reduce;
}
constexpr bool has_reduction(Action action) {
  return action == Action::all_reduce || action == Action::reduce_scatter || action == Action::reduce;
}

/// Lines that a program may have: there are so many functions that make calls, one for each line (call_sites.h), and
/// it is by their names, "call_at_017", that a report tells the lines apart.
constexpr int kMaxLines = 250;
constexpr std::string_view kCallSite = "call_at_";

/// One statement of a rank's program.
struct Call {
  int line = 0;  ///< in the text of the program; ranks that make one call together make it at one line
  Action action = Action::barrier;
  int group = 0;  ///< index in Program::groups
  Dtype dtype = Dtype::float32;
  /// [rows, ...] of the tensor; of reduce_scatter and all_to_all, of the part that is for one rank.
  std::vector<std::int64_t> shape;
  Reduction reduction = Reduction::sum;
  int peer = -1;  ///< world rank of the root or of the partner
  int tag = 0;
  bool asynchronous = false;  ///< goes on without waiting; a later `wait` does that
  int awaited = -1;           ///< line that a `wait` is for
  std::string key;            ///< of the store
  std::string label;          ///< names of the parameters that travel, one per line; empty: none are known
  int delay_ms = 0;           ///< the rank sleeps so long before

  bool operator==(const Call&) const = default;
};
std::int64_t num_elements(const Call& call);

struct Group {
  std::string name;
  std::vector<int> ranks;  ///< world ranks of the members, ascending

  bool operator==(const Group&) const = default;
};
bool is_member(const Group& group, int rank);

/// What every rank of a world does. The first group is the world.
struct Program {
  int world_size = 0;
  std::vector<Group> groups;
  std::vector<std::vector<Call>> ranks;  ///< the calls of each rank, in its order

  bool operator==(const Program&) const = default;
};

std::string to_json(const Program& program);
/// @throws std::invalid_argument  for text that is no program, and for ranks, groups and lines that there are not
Program parse_program(std::string_view json);

}  // namespace lockstep::sim::generated
