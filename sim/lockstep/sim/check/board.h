#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/sim/check/board_layout.h"

namespace lockstep::sim {

/// A world's shared memory, mapped into this process (board_layout.h). Its name is `/lockstep-<job>-<id>`.
class Board {
 public:
  /// Makes a new one with a name that nobody has. @throws std::runtime_error when there is no room or no permission
  static std::shared_ptr<Board> create(const std::string& job, int world_size);
  /// Waits up to a second for its maker. @throws std::runtime_error when there is none, or one of another version
  static std::shared_ptr<Board> open(const std::string& name);
  /// The same without waiting. @return null while its maker is still at it
  static std::shared_ptr<Board> open_if_made(const std::string& name);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// Names of the boards of a job that are there now.
  static std::vector<std::string> names_of(const std::string& job);
  /// Removes the name; who has it open keeps it.
  static void remove_name(const std::string& name) noexcept;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int world_size() const noexcept { return static_cast<int>(header().world_size); }
  [[nodiscard]] layout::Header& header() const noexcept { return *static_cast<layout::Header*>(memory_); }
  [[nodiscard]] layout::RankSeat& seat(int rank) const noexcept;

  /// The index of a group in the table; entered by whoever asks first.
  /// @param ranks     world ranks in group order
  /// @param instance  tells groups apart that were made one after the other with one name
  /// @return none when the table is full
  std::optional<int> group(std::string_view name, const std::vector<int>& ranks, int instance);

  [[nodiscard]] std::optional<std::string> verdict() const;
  /// @return whether this one is the first and stands now
  /// @throws std::length_error  for more than kVerdictBytes
  bool post_verdict(std::string_view json);
  /// Sleeps until there is a verdict, for `milliseconds` at most. @return whether there is one
  bool wait_for_verdict(int milliseconds) const;

 private:
  Board(std::string name, void* memory, std::size_t bytes) : name_(std::move(name)), memory_(memory), bytes_(bytes) {}

  std::string name_;
  void* memory_;
  std::size_t bytes_;
};

/// Text at an offset of a rank's arena.
std::string_view arena_text(const layout::RankSeat& seat, std::uint32_t offset);

/// The record of a call of a rank, if it is still there.
std::optional<layout::CallRecord> record_of(const layout::RankSeat& seat, std::uint64_t number);

/// For what the threads of a rank wait.
std::vector<layout::Wait> waits_of(const layout::RankSeat& seat);

/// Whether a rank that was there will not act again: it has ended, or its process has.
bool is_gone(const layout::RankSeat& seat);

/// Nanoseconds of CLOCK_MONOTONIC, which all processes of a host share.
std::int64_t now_ns() noexcept;

}  // namespace lockstep::sim
