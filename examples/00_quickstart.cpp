#include <torch/torch.h>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/launch/debug_launcher.h"

struct Line {  // 64 points of y = 3x + 1
  std::size_t size() const { return 64; }
  torch::data::Example<> get(std::size_t i) const { return {torch::full(1, i / 64.), torch::full(1, 3 * i / 64. + 1)}; }
};

void train() {
  lockstep::Accelerator accelerator;
  torch::nn::Linear net(1, 1);
  lockstep::data::DataLoader points(Line(), {.batch_size = 8, .shuffle = true});
  auto [model, optimizer, loader] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.5), points);
  for (int epoch = 0; epoch < 40; ++epoch) {
    for (const lockstep::Value& batch : *loader) {
      accelerator.backward(torch::mse_loss(model(batch[0].tensor()), batch[1].tensor()));
      optimizer->step();
      optimizer->zero_grad();
    }
  }
  accelerator.print(c10::str("y = ", net->weight.item<float>(), " x + ", net->bias.item<float>()));
}
int main() { lockstep::launch::debug_launcher(train, /*num_processes=*/2); }
