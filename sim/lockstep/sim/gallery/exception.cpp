// An exception on one rank, for which the others wait. The marked line has the last call before it.
#include <fstream>
#include <stdexcept>

#include "lockstep/data/data_loader.h"
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

struct Samples {
  std::size_t size() const { return 64; }
  torch::Tensor get(std::size_t index) const {
    if (index == broken) throw std::out_of_range("sample " + std::to_string(index) + " has no label");
    return torch::full({4}, static_cast<double>(index));
  }
  std::size_t broken;
};

// A sample of rank 0's shard cannot be read, at batch 41 of a run that went well so far.
LOCKSTEP_FAULT(exception_in_the_loader, 3) {
  const data::DataLoader loader(Samples{.broken = rank.rank() == 0 ? 41U : 64U});
  for (const Value& batch : loader) {
    const auto loss = batch.tensor().mean();
    rank.world().all_reduce(loss).wait();  // verdict: rank 0 here: rank_failed
  }
}

// Rank 1 catches what a bad line throws and goes on with the next, past the call. From then on it is a call ahead of
// the others, which shows when the lines have come to an end.
LOCKSTEP_FAULT(exception_swallowed, 3) {
  auto total = torch::zeros({1});
  for (int line = 0; line < 5; ++line) {
    try {
      total += std::stod(rank.rank() == 1 && line == 3 ? "n/a" : "1.5");
      rank.world().all_reduce(total).wait();
    } catch (const std::invalid_argument&) {
      continue;
    }
  }
  rank.world().broadcast(total).wait();  // verdict: rank 1 here: mismatch
}

// Rank 2 gets images of another width, and the product of matrices refuses.
LOCKSTEP_FAULT(exception_in_the_forward, 3) {
  torch::nn::Linear net(4, 2);
  for (int step = 0; step < 4; ++step) {
    const auto images = torch::ones({2, rank.rank() == 2 && step == 3 ? 5 : 4});
    const auto loss = net->forward(images).mean().detach();
    rank.world().all_reduce(loss).wait();  // verdict: rank 2 here: rank_failed
  }
}

// Between the post and the wait is time for other work, which may throw.
LOCKSTEP_FAULT(exception_with_a_call_in_flight, 3) {
  const auto gradient = torch::ones({32});
  for (int step = 0; step < 4; ++step) {
    auto work = rank.world().all_reduce(gradient);  // verdict: rank 1 here: rank_failed
    if (rank.rank() == 1 && step == 2) throw std::runtime_error("the learning rate is not a number");
    work.wait();
  }
}

// Only rank 3's node lacks the file.
LOCKSTEP_FAULT(exception_for_a_missing_file, 4) {
  const auto epoch = torch::ones({1}, torch::kLong);
  rank.world().broadcast(epoch).wait();  // verdict: rank 3 here: rank_failed
  if (rank.rank() == 3) {
    std::ifstream file("checkpoint-of-epoch-1.pt");
    if (!file) throw std::runtime_error("cannot open checkpoint-of-epoch-1.pt");
  }
  rank.world().barrier().wait();
}

// The main process alone writes the report, and fails at it while the others are on their way to the next epoch.
LOCKSTEP_FAULT(exception_on_the_main_process, 3) {
  const auto accuracy = torch::full({1}, 0.5);
  for (int epoch = 0; epoch < 3; ++epoch) {
    rank.world().reduce(accuracy, {.op = ReduceOp::avg}).wait();
    rank.world().barrier().wait();  // verdict: rank 0 here: rank_failed
    const std::vector<double> history = {0.3, 0.4};
    if (rank.rank() == 0 && accuracy.item<double>() < history.at(static_cast<std::size_t>(epoch) + 1)) break;
  }
}

}  // namespace
}  // namespace lockstep::sim::gallery
