#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "lockstep/base/export.h"
#include "lockstep/state/partial_state.h"

namespace lockstep::state {

/// While it lives, the main process is ahead of the others: they wait in the constructor until the main process's scope
/// has ended, also when it ends by an exception (STATE-131, 132).
///
///     { const MainProcessFirst first(state); build_cache(); }   // others find the cache
class LOCKSTEP_API MainProcessFirst {
 public:
  explicit MainProcessFirst(const PartialState& state) : MainProcessFirst(state, state.is_main_process()) {}
  ~MainProcessFirst() noexcept(false);
  MainProcessFirst(const MainProcessFirst&) = delete;
  MainProcessFirst& operator=(const MainProcessFirst&) = delete;

 protected:
  MainProcessFirst(const PartialState& state, bool is_first);

 private:
  PartialState state_;
  bool is_first_;
  int num_uncaught_;  // exceptions in flight where the scope began: only one more than that has failed the block
};

/// The same with the main process of each machine.
class LOCKSTEP_API LocalMainProcessFirst : public MainProcessFirst {
 public:
  explicit LocalMainProcessFirst(const PartialState& state) : MainProcessFirst(state, state.is_local_main_process()) {}
};

// Where a function may run, as conditions that look at the state each time they are asked (STATE-133). A process that
// is not distributed meets all of them, whatever the index; no rank meets one whose index no rank has.

inline auto main_process(const PartialState& state) {
  return [state] { return state.is_main_process(); };
}
inline auto local_main_process(const PartialState& state) {
  return [state] { return state.is_local_main_process(); };
}
inline auto last_process(const PartialState& state) {
  return [state] { return state.is_last_process(); };
}
inline auto process(const PartialState& state, int process_index) {
  return [state, process_index] { return !state.use_distributed() || state.process_index() == process_index; };
}
inline auto local_process(const PartialState& state, int local_process_index) {
  return [state, local_process_index] {
    return !state.use_distributed() || state.local_process_index() == local_process_index;
  };
}

/// A function that runs where `condition()` holds at the time of the call, and elsewhere returns nothing: an empty
/// optional, or simply returns when the function's result is void.
template <std::predicate Condition, typename Function>
auto run_where(Condition condition, Function function) {
  return [condition = std::move(condition), function = std::move(function)]<typename... Args>(Args&&... args) {
    using Result = std::invoke_result_t<const Function&, Args...>;
    if constexpr (std::is_void_v<Result>) {
      if (condition()) function(std::forward<Args>(args)...);
    } else {
      return condition() ? std::optional<Result>(function(std::forward<Args>(args)...)) : std::nullopt;
    }
  };
}

/// The same, decided once for all calls.
template <std::predicate Condition, typename Function>
auto run_where_now(const Condition& condition, Function function) {
  return run_where([holds = condition()] { return holds; }, std::move(function));
}

// The state's forms, decided when they are made; the Accelerator's are decided at each call.

template <typename Function>
auto on_main_process(const PartialState& state, Function function) {
  return run_where_now(main_process(state), std::move(function));
}
template <typename Function>
auto on_local_main_process(const PartialState& state, Function function) {
  return run_where_now(local_main_process(state), std::move(function));
}
template <typename Function>
auto on_last_process(const PartialState& state, Function function) {
  return run_where_now(last_process(state), std::move(function));
}
template <typename Function>
auto on_process(const PartialState& state, int process_index, Function function) {
  return run_where_now(process(state, process_index), std::move(function));
}
template <typename Function>
auto on_local_process(const PartialState& state, int local_process_index, Function function) {
  return run_where_now(local_process(state, local_process_index), std::move(function));
}

}  // namespace lockstep::state
