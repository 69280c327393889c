// A training program with a bug that hangs it: on several ranks it stands still until the time-out. Find the bug with
//
//   lockstep sim -n 3 -- build/release/bin/02_find_the_deadlock
//
// The solution is told in docs/debugging_a_hang.md.
#include <torch/torch.h>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/sim/main.h"

namespace {

struct Parabola {  // 96 points of y = x^2
  std::size_t size() const { return 96; }
  torch::data::Example<> get(std::size_t i) const {
    const double x = static_cast<double>(i) / 48. - 1.;
    return {torch::full({1}, x), torch::full({1}, x * x)};
  }
};

struct NetImpl : torch::nn::Module {
  NetImpl()
      : hidden(register_module("hidden", torch::nn::Linear(1, 16))),
        out(register_module("out", torch::nn::Linear(16, 1))) {}
  torch::Tensor forward(const torch::Tensor& x) { return out(torch::tanh(hidden(x))); }
  torch::nn::Linear hidden, out;
};
TORCH_MODULE(Net);

void train(lockstep::sim::Rank&) {
  lockstep::Accelerator accelerator;
  torch::manual_seed(1);
  Net net;
  lockstep::data::DataLoader points(Parabola(), {.batch_size = 4});
  auto [model, optimizer, loader] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1), points);
  for (int epoch = 0; epoch < 20; ++epoch) {
    double worst = 0;
    for (const lockstep::Value& batch : *loader) {
      const auto loss = torch::mse_loss(model(batch[0].tensor()), batch[1].tensor());
      worst = std::max(worst, loss.item<double>());
      accelerator.backward(loss);
      optimizer->step();
      optimizer->zero_grad();
    }
    accelerator.print("epoch " + std::to_string(epoch) + " done");
    if (worst < 0.15) break;  // good enough
  }
  accelerator.wait_for_everyone();
  accelerator.print("trained");
}

}  // namespace

int main(int argc, char** argv) { return lockstep::sim::main(argc, argv, {{"train", train}}); }
