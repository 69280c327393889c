#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "lockstep/launch/debug_launcher.h"
#include "lockstep/launch/thread_launcher.h"

namespace lockstep::test {

/// Runs `function` on n process ranks; a failed expectation or an exception on any of them fails the test.
/// Call it before LibTorch has started threads in this process: each test that forks has a process of its own (ctest).
inline void run_ranks(int n, const std::function<void()>& function, launch::DebugLauncherOptions options = {}) {
  const auto checked = [&function] {
    function();
    if (testing::Test::HasFailure()) throw AssertionError("an expectation failed on this rank; see its output above");
  };
  try {
    launch::debug_launcher(checked, n, options);
  } catch (const ChildFailed& failed) {
    ADD_FAILURE() << failed.what();
  }
}

/// The same on n thread ranks.
inline void run_thread_ranks(int n, const std::function<void()>& function, launch::ThreadLauncherOptions options = {}) {
  try {
    launch::thread_launcher(function, n, options);
  } catch (const ChildFailed& failed) {
    ADD_FAILURE() << failed.what();
  }
}

/// The same on both, processes first.
inline void run_processes_and_threads(int n, const std::function<void()>& function,
                                      launch::DebugLauncherOptions options = {}) {
  run_ranks(n, function, std::move(options));
  run_thread_ranks(n, function);
}

/// The failures of ranks that are meant to fail; fails the test when all do well.
inline std::vector<RankFailure> failures_of(int n, const std::function<void()>& function,
                                            launch::DebugLauncherOptions options = {}) {
  try {
    launch::debug_launcher(function, n, options);
  } catch (const ChildFailed& failed) {
    return failed.failures();
  }
  ADD_FAILURE() << "no rank failed";
  return {RankFailure{}};
}

/// The text of the exception that `call` throws; fails the test when it throws none of type E.
template <typename E>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace lockstep::test
