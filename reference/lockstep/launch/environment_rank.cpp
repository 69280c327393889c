// What environment_world_test.cpp starts: one rank of the environment, as a user's program is one. Its argument says
// what it does; the rank that FAILING_RANK names does it the bad way.
#include <ATen/Functions.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "lockstep/state/partial_state.h"

namespace {

using lockstep::state::PartialState;

void all_reduce(const PartialState& state) { state.world_group().all_reduce(at::ones({4})).wait(); }

void fail_by(const std::string& fault) {
  if (fault == "throws") throw lockstep::InvalidArgument("planted");
  if (fault == "exits") std::exit(3);
  if (fault == "is_killed") raise(SIGKILL);
  if (fault == "is_stopped") raise(SIGSTOP);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string work = argc > 1 ? argv[1] : "works";
  const PartialState state;
  all_reduce(state);
  const bool is_the_one = state.rank().environment().number("FAILING_RANK") == state.process_index();
  if (work == "works") return 0;
  if (work == "ends_first") {  // well, long before the others do
    if (!is_the_one) std::this_thread::sleep_for(std::chrono::seconds(1));
    return 0;
  }
  if (is_the_one) fail_by(work);
  for (;;) all_reduce(state);
}
