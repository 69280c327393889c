#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/state/partial_state.h"

namespace lockstep::state {

/// Runs `body` as the rank that these variables describe.
inline void as_rank(Environment environment, const std::function<void()>& body) {
  const auto rank = RankContext::from(std::move(environment));
  const StateScope scope(rank);
  body();
}

/// A variable of this process, for as long as it lives.
class ProcessVariable {
 public:
  ProcessVariable(std::string name, const std::string& value)
      : name_(std::move(name)), before_(Environment::of_process().find(name_)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~ProcessVariable() { before_ ? setenv(name_.c_str(), before_->c_str(), 1) : unsetenv(name_.c_str()); }
  ProcessVariable(const ProcessVariable&) = delete;
  ProcessVariable& operator=(const ProcessVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

/// The variables of a world of one over Gloo, which meets in a file of its own.
class WorldOfOne {
 public:
  WorldOfOne() {
    std::string pattern = std::filesystem::temp_directory_path() / "lockstep-XXXXXX";
    LOCKSTEP_ASSERT(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
  }
  ~WorldOfOne() { std::filesystem::remove_all(folder_); }
  WorldOfOne(const WorldOfOne&) = delete;
  WorldOfOne& operator=(const WorldOfOne&) = delete;

  [[nodiscard]] Environment environment() const {
    return {{"RANK", "0"},
            {"LOCAL_RANK", "0"},
            {"WORLD_SIZE", "1"},
            {"LOCAL_WORLD_SIZE", "1"},
            {"ACCELERATE_DEBUG_RDV_FILE", folder_ + "/store"},
            {"ACCELERATE_USE_CPU", "1"},
            {"GLOO_SOCKET_IFNAME", "lo"}};
  }

 private:
  std::string folder_;
};

}  // namespace lockstep::state
