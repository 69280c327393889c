// One rank ends before the others do. The marked line has the last call that it made.
#include <csignal>
#include <cstdlib>

#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// Rank 1's own loss is small enough, so it is done. The others' are not, and they wait for it.
LOCKSTEP_FAULT(early_exit_when_converged, 3) {
  const auto gradient = torch::ones({8});
  double loss = rank.rank() == 1 ? 0.4 : 4.0;
  for (int step = 0; step < 6; ++step) {
    rank.world().all_reduce(gradient).wait();  // verdict: rank 1 here: deadlock
    loss *= 0.5;
    if (loss < 0.1) return;
  }
}

// The same on the main process, at whose store all ranks met: it reports its accuracy and leaves the training to the
// others.
LOCKSTEP_FAULT(early_exit_of_the_main_process, 3) {
  const auto gradient = torch::ones({8});
  for (int step = 0; step < 6; ++step) {
    rank.world().all_reduce(gradient).wait();  // verdict: rank 0 here: deadlock
    const double accuracy = rank.rank() == 0 ? 0.9 : 0.5;
    if (accuracy > 0.8 && step == 2) return;
  }
}

// A check of the configuration ends the program, with a code that says that all is well.
LOCKSTEP_FAULT(early_exit_with_code_0, 3) {
  const auto batch_size = torch::full({1}, 16, torch::kLong);
  rank.world().broadcast(batch_size).wait();  // verdict: rank 2 here: deadlock
  const bool is_dry_run = rank.rank() == 2;
  if (is_dry_run) std::exit(0);
  rank.world().barrier().wait();
}

// The same with a code that says that it is not: a flag that only rank 1 was given.
LOCKSTEP_FAULT(early_exit_with_code_3, 3) {
  const auto batch_size = torch::full({1}, 16, torch::kLong);
  rank.world().broadcast(batch_size).wait();  // verdict: rank 1 here: rank_failed
  const bool has_bad_flag = rank.rank() == 1;
  if (has_bad_flag) std::exit(3);
  rank.world().barrier().wait();
}

// The kernel ends the largest process when memory runs out. Nobody is told.
LOCKSTEP_FAULT(early_exit_by_a_signal, 3) {
  const auto gradient = torch::ones({64});
  for (int step = 0; step < 4; ++step) {
    rank.world().all_reduce(gradient).wait();  // verdict: rank 2 here: rank_failed
    if (rank.rank() == 2 && step == 2) std::raise(SIGKILL);
  }
}

// A library that rank 3 alone uses ends the process without a word, past all handlers, and calls that success.
LOCKSTEP_FAULT(early_exit_without_a_word, 4) {
  const auto all = torch::empty({4});
  for (int step = 0; step < 4; ++step) {
    rank.world().all_gather(all, torch::ones({1})).wait();  // verdict: rank 3 here: rank_failed
    if (rank.rank() == 3 && step == 1) std::_Exit(0);
  }
}

}  // namespace
}  // namespace lockstep::sim::gallery
