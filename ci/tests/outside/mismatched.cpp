#include <torch/torch.h>

#include "lockstep/sim/main.h"

// The ranks reduce tensors of different shapes: the simulator of the installed Lockstep has to say so.
void mismatched(lockstep::sim::Rank& rank) {
  auto tensor = torch::ones({rank.rank() + 1});
  rank.world().all_reduce(tensor);
}

int main(int argc, char** argv) { return lockstep::sim::main(argc, argv, {{"mismatched", mismatched}}); }
