#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/export.h"

namespace lockstep {

/// What every message of Lockstep tells: where it happened, what was expected, what came, what to do.
/// Empty parts are left out of the text.
struct Problem {
  std::string where;
  std::string expected;
  std::string got;
  std::string fix;
};

/// "where: expected <expected>, got <got>. <fix>"
LOCKSTEP_API std::string to_text(const Problem& problem);

/// Base of all errors of Lockstep. `kind()` is the word by which the spec and the conformance suites know the error
/// (conformance/spec/README.md, "Error kinds"); the wording is free.
class LOCKSTEP_API Error : public std::runtime_error {
 public:
  Error(std::string_view kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ~Error() override;

  [[nodiscard]] std::string_view kind() const noexcept { return kind_; }

 private:
  std::string_view kind_;  // always a string literal
};

/// Declares an error type whose kind is fixed. Each takes a Problem, or a finished sentence.
#define LOCKSTEP_DECLARE_ERROR(Type, Kind)                                   \
  class LOCKSTEP_API Type : public Error {                                   \
   public:                                                                   \
    explicit Type(const Problem& problem) : Error(Kind, to_text(problem)) {} \
    explicit Type(const std::string& message) : Error(Kind, message) {}      \
    ~Type() override;                                                        \
  }

LOCKSTEP_DECLARE_ERROR(InvalidArgument, "ValueError");
LOCKSTEP_DECLARE_ERROR(TypeError, "TypeError");
LOCKSTEP_DECLARE_ERROR(OutOfRange, "IndexError");
LOCKSTEP_DECLARE_ERROR(KeyError, "KeyError");
LOCKSTEP_DECLARE_ERROR(AttributeError, "AttributeError");
LOCKSTEP_DECLARE_ERROR(RuntimeError, "RuntimeError");
LOCKSTEP_DECLARE_ERROR(NotSupported, "NotImplementedError");
LOCKSTEP_DECLARE_ERROR(Missing, "ImportError");
LOCKSTEP_DECLARE_ERROR(FileError, "OSError");
LOCKSTEP_DECLARE_ERROR(AssertionError, "AssertionError");
/// Ranks disagree about a collective; the message lists every rank's operation, shapes and dtypes.
LOCKSTEP_DECLARE_ERROR(CollectiveMismatch, "DistributedOperationException");
/// The ranks wait for each other and none can go on; the message says who waits where, and for whom.
LOCKSTEP_DECLARE_ERROR(Deadlock, "RuntimeError");
/// A peer did not answer within the time-out, and nothing says why.
LOCKSTEP_DECLARE_ERROR(Timeout, "RuntimeError");
/// Code that needs to know its rank ran outside any rank.
LOCKSTEP_DECLARE_ERROR(NoRankContext, "RuntimeError");

#undef LOCKSTEP_DECLARE_ERROR

/// A peer is gone: `rank` is who, `cause` is why, as far as anybody knows.
class LOCKSTEP_API RankLost : public Error {
 public:
  RankLost(int rank, std::string cause, const std::string& seen_in);
  ~RankLost() override;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] const std::string& cause() const noexcept { return cause_; }

 private:
  int rank_;
  std::string cause_;
};

/// An error that `rank` met and told the others of, so that all end alike: what() names the rank, and `cause` is what
/// it said itself.
class LOCKSTEP_API RelayedError : public Error {
 public:
  /// @param kind  a string literal
  RelayedError(std::string_view kind, int rank, std::string cause, const std::string& where);
  ~RelayedError() override;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] const std::string& cause() const noexcept { return cause_; }

 private:
  int rank_;
  std::string cause_;
};

/// One rank's outcome, as a launcher reports it.
struct RankFailure {
  int rank = 0;
  std::string kind;     ///< kind() of the error, or "exit", "signal", "timeout"
  std::string message;  ///< the error's text, without the rank
  int exit_code = 0;    ///< valid unless `signal` is set
  int signal = 0;       ///< the signal that ended the rank, 0 if none did
};

/// A launcher's ranks failed. `first()` is the rank where it began, `failures()` all of them, first one first.
class LOCKSTEP_API ChildFailed : public Error {
 public:
  explicit ChildFailed(std::vector<RankFailure> failures);
  ~ChildFailed() override;

  [[nodiscard]] const RankFailure& first() const noexcept { return failures_.front(); }
  [[nodiscard]] const std::vector<RankFailure>& failures() const noexcept { return failures_; }

 private:
  std::vector<RankFailure> failures_;
};

/// The kind of any exception: kind() of ours, the spec's word for the standard library's, "RuntimeError" otherwise.
LOCKSTEP_API std::string_view kind_of(const std::exception& error) noexcept;

/// The first line of an exception's text: LibTorch appends a C++ stack to its messages, which helps nobody in a report.
LOCKSTEP_API std::string brief(const std::exception& error);

/// Ends the process with file, line and expression: an invariant of our own does not hold.
[[noreturn]] LOCKSTEP_API void assertion_failed(const char* expression, const char* file, int line);

#define LOCKSTEP_ASSERT(expression) \
  (static_cast<bool>(expression) ? void() : ::lockstep::assertion_failed(#expression, __FILE__, __LINE__))

}  // namespace lockstep
