#include "lockstep/state/process_control.h"

#include <exception>

namespace lockstep::state {

MainProcessFirst::MainProcessFirst(const PartialState& state, bool is_first)
    : state_(state), is_first_(is_first), num_uncaught_(std::uncaught_exceptions()) {
  if (!is_first_) state_.wait_for_everyone();
}

MainProcessFirst::~MainProcessFirst() noexcept(false) {
  if (!is_first_) return;
  if (std::uncaught_exceptions() == num_uncaught_) {
    state_.wait_for_everyone();
    return;
  }
  try {  // the block failed: the others are released all the same, and what failed it goes on its way
    state_.wait_for_everyone();
  } catch (const std::exception&) {
  }
}

}  // namespace lockstep::state
