// A training step of a 50-layer MLP of width 64 (100 parameter tensors; batch 8, SGD), by hand and by the Accelerator.
//
//   training_step --loop hand|accelerator [--steps 100]
//
// The Accelerator takes its rank from the environment.
//
// Prints the seconds per step, without the first steps.
#include <fmt/format.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "lockstep/accelerator/accelerator.h"

namespace {

constexpr int kLayers = 50;
constexpr int kWidth = 64;
constexpr int kBatch = 8;
constexpr double kLearningRate = 1e-3;
constexpr int kWarmUp = 10;

struct Points {  // as many batches as there are steps, for each rank
  std::size_t num_items = 0;
  torch::Tensor x = torch::randn({kWidth});
  torch::Tensor y = torch::randn({kWidth});

  [[nodiscard]] std::size_t size() const { return num_items; }
  [[nodiscard]] torch::data::Example<> get(std::size_t) const { return {x, y}; }
};

struct MlpImpl : torch::nn::Module {
  MlpImpl() {
    for (int i = 0; i < kLayers; ++i)
      layers.push_back(register_module("l" + std::to_string(i), torch::nn::Linear(kWidth, kWidth)));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto& layer : layers) x = torch::relu(layer(x));
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};
TORCH_MODULE(Mlp);

// Counts steps, and the time of those after the first few.
class Clock {
 public:
  void count() {
    if (++steps_ == kWarmUp) start_ = std::chrono::steady_clock::now();
  }
  [[nodiscard]] double seconds_per_step() const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    return passed.count() / (steps_ - kWarmUp);
  }

 private:
  int steps_ = 0;
  std::chrono::steady_clock::time_point start_;
};

double by_hand(int steps) {
  Mlp net;
  torch::optim::SGD optimizer(net->parameters(), kLearningRate);
  const lockstep::data::DataLoader loader(Points{.num_items = static_cast<std::size_t>(steps) * kBatch},
                                          {.batch_size = kBatch});
  Clock clock;
  for (const lockstep::Value& batch : loader) {
    const auto loss = torch::mse_loss(net(batch[0].tensor()), batch[1].tensor());
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    clock.count();
  }
  return clock.seconds_per_step();
}

double by_accelerator(int steps) {
  lockstep::Accelerator accelerator;
  Mlp net;
  const auto num_items =
      static_cast<std::size_t>(steps) * kBatch * static_cast<std::size_t>(accelerator.num_processes());
  const lockstep::data::DataLoader points(Points{.num_items = num_items}, {.batch_size = kBatch});
  auto [model, optimizer, loader] =
      accelerator.prepare(net, torch::optim::SGD(net->parameters(), kLearningRate), points);
  Clock clock;
  for (const lockstep::Value& batch : *loader) {
    const auto window = accelerator.accumulate(model);
    const auto loss = torch::mse_loss(model(batch[0].tensor()), batch[1].tensor());
    accelerator.backward(loss);
    optimizer->step();
    optimizer->zero_grad();
    clock.count();
  }
  return clock.seconds_per_step();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"A training step by hand and by the Accelerator."};
  std::string loop = "accelerator";
  int steps = 100;
  app.add_option("--loop", loop, "who makes it")->check(CLI::IsMember({"hand", "accelerator"}));
  app.add_option("--steps", steps, "how many")->check(CLI::Range(kWarmUp + 1, 1'000'000));
  CLI11_PARSE(app, argc, argv);
  torch::manual_seed(1);
  at::set_num_threads(1);
  const double seconds = loop == "hand" ? by_hand(steps) : by_accelerator(steps);
  std::cout << fmt::format("{:.6f}\n", seconds);
}
