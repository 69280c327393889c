#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sim {

/// c10d's operations, by its names in snake case.
enum class Operation : std::uint8_t {
  allreduce,
  broadcast,
  allgather,
  reduce_scatter,
  alltoall,
  gather,
  scatter,
  reduce,
  barrier,
  send,
  recv,
};
std::string_view to_word(Operation operation);

/// Which of c10d's functions for the operation was called; the forms do not go together on the wire.
enum class Form : std::uint8_t { plain, tensor, coalesced, sparse };

constexpr bool is_point_to_point(Operation operation) {
  return operation == Operation::send || operation == Operation::recv;
}

/// "the coalesced one"; how a hint calls it.
std::string_view form_words(Form form);

constexpr std::uint8_t kNoReduceOp = 255;
/// @param op  c10d::ReduceOp::RedOpType as a number, or kNoReduceOp
std::string_view reduce_op_word(std::uint8_t op);
/// @param dtype  at::ScalarType as a number; "float32", as PyTorch's users know it
std::string_view dtype_word(std::uint8_t dtype);

/// Shapes and dtypes of a call's tensors, packed as it travels over the board: per tensor [dtype, dims, sizes...].
///
/// What does not fit, from some tensor on, is cut off for the report, and still part of the hash.
class Shapes {
 public:
  static constexpr int kMaxWords = 24;

  void add(std::uint8_t dtype, std::span<const std::int64_t> sizes) noexcept;
  void add(std::uint8_t dtype, std::initializer_list<std::int64_t> sizes) noexcept {
    add(dtype, std::span(sizes.begin(), sizes.size()));
  }

  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] std::span<const std::int64_t> words() const noexcept { return {words_.data(), num_words_}; }
  [[nodiscard]] std::uint32_t num_tensors() const noexcept { return num_tensors_; }
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }

 private:
  std::uint64_t hash_ = 0x9e3779b97f4a7c15;
  std::uint32_t num_tensors_ = 0;
  std::uint32_t num_words_ = 0;
  bool is_cut_ = false;
  std::array<std::int64_t, kMaxWords> words_{};
};

/// "float32 [2, 3]" of each tensor in packed words.
std::vector<std::string> describe_tensors(std::span<const std::int64_t> words);

/// One call of a collective or of a point-to-point operation, before it is handed to the backend.
struct Call {
  Operation operation = Operation::barrier;
  Form form = Form::plain;
  std::uint8_t reduce_op = kNoReduceOp;
  int peer = -1;  ///< group rank of the root or the partner; -1: none, or a receive from any rank
  int tag = 0;
  const Shapes* shapes = nullptr;  ///< of this rank's part; what all ranks must agree on
  /// Of an all-to-all: elements to each rank and from each rank, in group order; they must agree pair by pair.
  std::span<const std::int64_t> sends = {};
  std::span<const std::int64_t> receives = {};
};

/// A place in the user's code, as the adapter knows it; what it does not know stays empty.
struct CallSite {
  std::span<const std::uintptr_t> frames;  ///< return addresses (C++), the innermost of the user's code first
  std::string_view text;                   ///< "file:line:function", where it is known as text (Python)
  std::uint64_t hash = 0;                  ///< the same in all processes of the program; 0: not known
};

/// Whether a call and those that go with it are made at one place. Not the two ends of a message; nor barriers, which
/// "main process first" has before and after; nor the call of the root, which has a branch of its own in many a
/// program.
constexpr bool is_made_at_one_place(const Call& call, int group_rank) {
  return !is_point_to_point(call.operation) && call.operation != Operation::barrier && call.peer != group_rank;
}

/// Where in its run and in its code a rank makes a call.
struct Context {
  std::int64_t step = 0;
  std::int32_t micro_step = 0;
  std::uint8_t phase = 6;  ///< accounting::Phase as a number; 6: other
  std::string_view label;  ///< names of the parameters or the bucket that travel, one per line; may be empty
  CallSite site;
};
std::string_view phase_word(std::uint8_t phase);

/// What all members must agree on, as one number. Two calls that go together have equal ones.
std::uint64_t fingerprint(const Call& call) noexcept;

/// Mixes a number into a hash (SplitMix64's finalizer).
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  std::uint64_t x = hash ^ (value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
constexpr std::uint64_t mix(std::uint64_t hash, std::string_view text) noexcept {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return mix(hash, text.size());
}

}  // namespace lockstep::sim
