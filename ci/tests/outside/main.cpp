#include <cstdio>

#include "lockstep/launch/debug_launcher.h"
#include "lockstep/state/partial_state.h"

int main() {
  lockstep::launch::debug_launcher(
      [] {
        const lockstep::state::PartialState state;
        state.wait_for_everyone();
        std::printf("rank %d of %d\n", state.process_index(), state.num_processes());
      },
      /*num_processes=*/2);
}
