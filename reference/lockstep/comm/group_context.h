#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockstep/accounting/account.h"
#include "lockstep/base/world.h"
#include "lockstep/comm/failure_board.h"

namespace lockstep::comm {

/// What is known about a tensor that travels: the parameters in it, and by what its sum is divided (0: no reduction of
/// gradients).
struct TensorLabel {
  std::vector<std::string> names;
  int divisor = 0;
};

/// What a group's backend, its works and its facade share.
struct GroupContext {
  std::string name;
  World world;             ///< this rank within the group
  std::vector<int> ranks;  ///< global ranks of the members, in group order
  std::string backend;     ///< name in the table of backends
  std::chrono::milliseconds timeout;
  bool debug = false;
  std::shared_ptr<accounting::Account> account;
  std::shared_ptr<FailureBoard> failures;  ///< none in groups that were made by hand

  void set_label(const void* data, TensorLabel label) {
    const std::lock_guard lock(labels_mutex);
    labels[data] = std::move(label);
  }
  [[nodiscard]] TensorLabel label_of(const void* data) const {
    const std::lock_guard lock(labels_mutex);
    const auto found = labels.find(data);
    return found == labels.end() ? TensorLabel{} : found->second;
  }
  void clear_label(const void* data) {
    const std::lock_guard lock(labels_mutex);
    labels.erase(data);
  }

  mutable std::mutex labels_mutex;
  std::unordered_map<const void*, TensorLabel> labels;  ///< by address of the tensor's data
};

}  // namespace lockstep::comm
