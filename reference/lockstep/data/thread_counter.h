#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

namespace lockstep::data::test {

/// Starts plain threads and knows how many run. Free of LibTorch.
struct ThreadCounter {
  std::atomic<int> started{0};
  std::atomic<int> running{0};

  std::function<std::thread(std::function<void()>)> starter() {
    return [this](std::function<void()> body) {
      ++started;
      ++running;
      return std::thread([this, body = std::move(body)] {
        body();
        --running;
      });
    };
  }
};

}  // namespace lockstep::data::test
