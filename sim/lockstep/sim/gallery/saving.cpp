// What only the main process does, with a call inside in which all have to take part.
#include <sstream>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// Saving begins with a barrier, so that nobody still changes the weights. Called on the main process alone it waits for
// ranks that are in the next step.
LOCKSTEP_FAULT(saving_barrier_on_the_main_process, 3) {
  Accelerator accelerator({.cpu = true});
  const auto model = accelerator.prepare(torch::nn::Linear(4, 2));
  const auto save_state = [&] {
    accelerator.wait_for_everyone();  // verdict: rank 0 here: mismatch
    std::ostringstream file;
    torch::save(model->weight, file);
  };
  for (int step = 0; step < 4; ++step) {
    const auto loss = model(torch::ones({3, 4})).mean();
    accelerator.backward(loss);
    model->zero_grad();
    if (step == 2 && accelerator.is_main_process()) save_state();
  }
}

// The parts of a sharded state are gathered to be written by one. All have to bring theirs.
LOCKSTEP_FAULT(saving_gathers_on_the_main_process, 3) {
  const Accelerator accelerator({.cpu = true});
  const auto shard = torch::ones({2, 4});
  if (accelerator.is_main_process()) {
    const auto all = accelerator.gather(shard);  // verdict: rank 0 here: mismatch
    std::ostringstream file;
    torch::save(all.tensor(), file);
  }
  accelerator.wait_for_everyone();
}

// Inside main_process_first() the others wait until the main process is through, which waits for them in turn.
LOCKSTEP_FAULT(saving_reduces_in_main_process_first, 3) {
  const Accelerator accelerator({.cpu = true});
  const auto num_files = torch::ones({1});
  {
    const auto first = accelerator.main_process_first();
    const auto total = accelerator.reduce(num_files, comm::Reduction::sum);  // verdict: rank 0 here: mismatch
  }
  accelerator.wait_for_everyone();
}

// A function that was wrapped to run on the main process grew a call since.
LOCKSTEP_FAULT(saving_report_with_a_mean, 3) {
  const Accelerator accelerator({.cpu = true});
  const auto report = accelerator.on_main_process([&](const torch::Tensor& loss) {
    const auto mean = accelerator.reduce(loss, comm::Reduction::mean);  // verdict: rank 0 here: mismatch
    accelerator.print(c10::str("mean loss ", mean.tensor().item<double>()));
  });
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto losses = accelerator.gather(torch::full({2}, 0.5));
    report(losses.tensor().mean());
  }
}

// The last process writes, and waits for everyone before it does. The others evaluate meanwhile.
LOCKSTEP_FAULT(saving_last_process_waits, 4) {
  const Accelerator accelerator({.cpu = true});
  const auto predictions = torch::full({2}, accelerator.process_index());
  if (accelerator.is_last_process()) {
    accelerator.wait_for_everyone();  // verdict: rank 3 here: mismatch
    std::ostringstream file;
    torch::save(predictions, file);
  }
  const auto all = accelerator.gather_for_metrics(predictions);
}

// The best state so far is saved by all together. Best is, on each rank, what it scored on its own share.
LOCKSTEP_FAULT(saving_the_best_by_the_own_score, 3) {
  const Accelerator accelerator({.cpu = true});
  const std::vector<double> scores = {0.6, accelerator.process_index() == 2 ? 0.7 : 0.5, 0.55};
  double best = 0;
  for (const double score : scores) {
    if (score > best) {
      best = score;
      const auto state = accelerator.gather(torch::ones({2, 4}));  // verdict: rank 2 here: mismatch
    }
    const auto all_scores = accelerator.gather(torch::full({1}, score, torch::kDouble));
  }
}

}  // namespace
}  // namespace lockstep::sim::gallery
