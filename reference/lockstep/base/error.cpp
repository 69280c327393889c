#include "lockstep/base/error.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace lockstep {

std::string to_text(const Problem& problem) {
  std::string text = problem.where;
  const auto append = [&text](std::string_view separator, std::string_view label, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += separator;
    text += label;
    text += part;
  };
  append(": ", "expected ", problem.expected);
  append(problem.expected.empty() ? ": " : ", ", "got ", problem.got);
  append(". ", "", problem.fix);
  return text;
}

// The destructors stand here so that each type's run-time information has one home, this library: a plug-in's
// exception is then caught by type in the program that loaded it.
Error::~Error() = default;
InvalidArgument::~InvalidArgument() = default;
TypeError::~TypeError() = default;
OutOfRange::~OutOfRange() = default;
KeyError::~KeyError() = default;
AttributeError::~AttributeError() = default;
RuntimeError::~RuntimeError() = default;
NotSupported::~NotSupported() = default;
Missing::~Missing() = default;
FileError::~FileError() = default;
AssertionError::~AssertionError() = default;
CollectiveMismatch::~CollectiveMismatch() = default;
Deadlock::~Deadlock() = default;
Timeout::~Timeout() = default;
NoRankContext::~NoRankContext() = default;

RankLost::RankLost(int rank, std::string cause, const std::string& seen_in)
    : Error("RuntimeError", "rank " + std::to_string(rank) + " was lost: " + cause +
                                (seen_in.empty() ? "" : " (noticed in " + seen_in + ")")),
      rank_(rank),
      cause_(std::move(cause)) {}
RankLost::~RankLost() = default;

RelayedError::RelayedError(std::string_view kind, int rank, std::string cause, const std::string& where)
    : Error(kind, where + " on rank " + std::to_string(rank) + " failed: " + cause),
      rank_(rank),
      cause_(std::move(cause)) {}
RelayedError::~RelayedError() = default;

namespace {

std::string describe(const RankFailure& failure) {
  std::string text = "rank " + std::to_string(failure.rank) + ": ";
  if (failure.signal != 0) {
    text += "ended by signal " + std::to_string(failure.signal) + " (" + strsignal(failure.signal) + ")";
    return failure.message.empty() ? text : text + ", " + failure.message;
  }
  if (failure.kind == "exit") return text + "exited with code " + std::to_string(failure.exit_code);
  return text + failure.kind + ": " + failure.message;
}

std::string describe(const std::vector<RankFailure>& failures) {
  std::string text = describe(failures.front());
  if (failures.size() > 1) {
    text += "\nand, after it:";
    for (auto failure = failures.begin() + 1; failure != failures.end(); ++failure) text += "\n  " + describe(*failure);
  }
  return text;
}

}  // namespace

ChildFailed::ChildFailed(std::vector<RankFailure> failures)
    : Error("RuntimeError", describe(failures)), failures_(std::move(failures)) {}
ChildFailed::~ChildFailed() = default;

std::string_view kind_of(const std::exception& error) noexcept {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return ours->kind();
  if (dynamic_cast<const std::out_of_range*>(&error) != nullptr) return "IndexError";
  if (dynamic_cast<const std::invalid_argument*>(&error) != nullptr) return "ValueError";
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "MemoryError";
  return "RuntimeError";
}

std::string brief(const std::exception& error) {
  std::string text = error.what();
  if (dynamic_cast<const Error*>(&error) != nullptr) return text;
  for (const char* stack : {"\nException raised from", "\nThe above operation failed", "\nframe #0"}) {
    if (const auto at = text.find(stack); at != std::string::npos) text.resize(at);
  }
  return text;
}

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "lockstep: broken invariant: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace lockstep
