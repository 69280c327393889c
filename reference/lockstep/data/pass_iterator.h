#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "lockstep/value/value.h"

namespace lockstep::data {

/// Lets `for (auto& batch : loader)` run a pass, of which it needs `next() -> std::optional<Value>`. Copies share the
/// pass, which ends with the last of them: leaving the loop, in whatever way, ends the pass and its threads.
template <typename Pass>
class PassIterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Value;
  using difference_type = std::ptrdiff_t;

  explicit PassIterator(std::unique_ptr<Pass> pass) : state_(std::make_shared<State>()) {
    state_->pass = std::move(pass);
    ++*this;
  }

  Value& operator*() const { return *state_->current; }
  Value* operator->() const { return &*state_->current; }
  PassIterator& operator++() {
    state_->current = state_->pass->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t /*end*/) const { return !state_->current; }

 private:
  struct State {
    std::unique_ptr<Pass> pass;
    std::optional<Value> current;
  };
  std::shared_ptr<State> state_;
};

}  // namespace lockstep::data
