#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::accounting {

/// What is known about a tensor that travels: the parameters in it, and by what its sum is divided (0: no reduction of
/// gradients).
struct TensorLabel {
  std::vector<std::string> names;
  int divisor = 0;
  std::function<bool()> is_alive = {};  ///< whether the memory still is the tensor's; none: until erased
};

/// One rank's labelled tensors, by the address of their data. Safe to use from several threads.
class TensorLabels {
 public:
  void set(const void* data, TensorLabel label) {
    const std::lock_guard lock(mutex_);
    labels_[data] = std::move(label);
    has_any_ = true;
  }
  void erase(const void* data) {
    const std::lock_guard lock(mutex_);
    labels_.erase(data);
    has_any_ = !labels_.empty();
  }
  [[nodiscard]] TensorLabel find(const void* data) const {
    if (!has_any_.load(std::memory_order_relaxed)) return {};  // the usual case, asked at every call
    const std::lock_guard lock(mutex_);
    const auto found = labels_.find(data);
    if (found == labels_.end() || (found->second.is_alive && !found->second.is_alive())) return {};
    return found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, TensorLabel> labels_;
  std::atomic<bool> has_any_{false};
};

}  // namespace lockstep::accounting
