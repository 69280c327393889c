#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/launch/debug_launcher.h"
#include "lockstep/state/environment.h"

namespace lockstep::launch {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  void reset() noexcept;
  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// A rank that was started, and the ends of its pipes.
struct RankProcess {
  int rank = 0;
  pid_t pid = 0;
  Descriptor report;  ///< reads what the rank says of itself at its end
  Descriptor output;  ///< reads its stdout; none when inherited
  Descriptor errors;  ///< reads its stderr; none when inherited
};

/// What runs in a rank: the function in its rank context, then the report. Never returns.
[[noreturn]] void run_rank(const std::function<void()>& function, const state::Environment& environment, int report);

RankProcess fork_rank(int rank, const std::function<void()>& function, const state::Environment& environment,
                      Output output);
/// Starts this program anew with the same arguments.
RankProcess spawn_rank(int rank, const state::Environment& environment, Output output);

/// What the rank wrote into its report; none when it ended without a word.
std::optional<RankFailure> parse_report(int rank, const std::string& text);
constexpr auto kOk = "ok";  ///< the kind in the report of a rank that did not fail

}  // namespace lockstep::launch
