#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/comm/process_group.h"

namespace lockstep::comm {

/// One rank of a test's world.
struct TestRank {
  int rank = 0;
  int size = 1;
  Store store;  ///< shared by all ranks, for what a test has to tell the others
  std::shared_ptr<accounting::Account> account;
  std::shared_ptr<FailureBoard> failures;  ///< where the world has one
  ProcessGroup group;
};

struct TestWorld {
  std::string backend = "threads";  ///< ranks of "threads" are threads of this process, all others are processes
  int size = 2;
  std::chrono::milliseconds timeout = std::chrono::seconds(20);
  bool with_failure_board = false;
  std::vector<int> killed = {};  ///< ranks that die by a signal, as the test wants
};
inline void PrintTo(const TestWorld& world, std::ostream* out) { *out << world.size << " ranks on " << world.backend; }

/// Runs `body` on every rank, and makes each failure there, assertion or exception, one of the current test.
void run_ranks(const TestWorld& world, const std::function<void(TestRank&)>& body);

/// A process that was forked from this one, and is killed and reaped at the latest with its object. `body` must not use
/// LibTorch unless this process is without threads.
class Child {
 public:
  explicit Child(const std::function<void()>& body);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Sends a signal and waits until it has had its effect: stopped, or a zombie.
  void signal(int number) const;
  /// Waits for the end; returns the status of waitpid.
  int reap();

 private:
  pid_t pid_ = 0;
};

/// A folder that is gone with its object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// The text of the error that `call` throws, which must be an `Expected`; a failure of the test if it throws none.
template <typename Expected, typename Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind of error: " << brief(error);
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

testing::AssertionResult contains(const std::string& text, const std::string& part);
#define EXPECT_CONTAINS(text, part) EXPECT_TRUE(::lockstep::comm::contains((text), (part)))

/// The tests that every backend passes; a program instantiates them for its worlds.
class CollectiveTest : public testing::TestWithParam<TestWorld> {
 protected:
  static void run(const std::function<void(TestRank&)>& body) { run_ranks(GetParam(), body); }
  static bool is_gloo() { return GetParam().backend == "gloo" || GetParam().backend == "checked"; }
};
inline std::string name_of(const testing::TestParamInfo<TestWorld>& info) {
  return info.param.backend + std::to_string(info.param.size);
}

}  // namespace lockstep::comm
