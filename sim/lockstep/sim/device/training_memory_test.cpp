// Training with its memory counted: what a report shows of it, and that it comes to the same bits.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/sim/device/test_support/counted_memory.h"
#include "run_ranks.h"

namespace lockstep::sim {
namespace {

using accounting::Phase;

using TrainingMemory = CountedMemory;

// Convolutions allocate through oneDNN.
struct SmallNetImpl : torch::nn::Module {
  SmallNetImpl() {
    std::int64_t number = 0;
    const torch::NoGradGuard no_grad;
    for (auto& weight : parameters()) weight.copy_(at::arange(weight.numel()).add(++number).sin().view_as(weight));
  }
  at::Tensor forward(const at::Tensor& images) { return last(conv(images).relu().flatten(1)); }

  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(8 * 8 * 8, 10));
};
TORCH_MODULE(SmallNet);

struct Images {
  [[nodiscard]] std::size_t size() const { return 64; }
  [[nodiscard]] torch::data::Example<> get(std::size_t i) const {
    const auto number = static_cast<double>(i);
    return {at::arange(3 * 8 * 8).add(number).cos().view({3, 8, 8}), at::full({}, i % 10, at::kLong)};
  }
};

std::vector<at::Tensor> trained_weights() {
  Accelerator accelerator;
  const SmallNet net;
  auto [model, optimizer, loader] = accelerator.prepare(net, torch::optim::AdamW(net->parameters(), 1e-2),
                                                        data::DataLoader(Images(), {.batch_size = 4}));
  for (const auto& batch : *loader) {
    accelerator.backward(torch::cross_entropy_loss(model(batch[0].tensor()), batch[1].tensor()));
    optimizer->step();
    optimizer->zero_grad();
  }
  std::vector<at::Tensor> weights;
  for (const auto& weight : net->parameters()) weights.push_back(weight.detach());
  return weights;
}

std::int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

TEST_F(TrainingMemory, TheAcceleratorTellsThePhases) {
  test::run_thread_ranks(2, [] {
    MemoryReport report;
    std::int64_t model_bytes = 0;
    {
      Accelerator accelerator;
      const SmallNet net;
      model_bytes = bytes_of(net->parameters());
      auto [model, optimizer] = accelerator.prepare(net, torch::optim::AdamW(net->parameters(), 1e-2));
      const auto live_before = TensorMemory::report().live_bytes;
      EXPECT_GE(live_before, model_bytes);
      accelerator.backward(model(at::ones({4, 3, 8, 8})).sum());
      optimizer->step();
      report = TensorMemory::report();
      optimizer->zero_grad();
    }
    EXPECT_EQ(report.phases.at(Phase::step).live_bytes, 2 * model_bytes);  // AdamW's two moments
    EXPECT_GE(report.phases.at(Phase::backward).live_bytes, model_bytes);  // the gradients
    EXPECT_EQ(report.phases.at(Phase::forward).live_bytes, 0);             // no activation is left
    EXPECT_GT(report.phases.at(Phase::forward).peak_bytes, model_bytes);
    std::int64_t sum = 0;
    std::int64_t highest = 0;
    for (const auto& [phase, memory] : report.phases) {
      sum += memory.live_bytes;
      highest = std::max(highest, memory.peak_bytes);
    }
    EXPECT_EQ(sum, report.live_bytes);
    EXPECT_EQ(highest, report.peak_bytes);
  });
}

// The weights of both ranks after training on two thread ranks.
std::map<int, std::vector<at::Tensor>> weights_by_rank() {
  std::mutex mutex;
  std::map<int, std::vector<at::Tensor>> weights;
  test::run_thread_ranks(2, [&] {
    auto mine = trained_weights();
    const std::lock_guard lock(mutex);
    weights[state::RankContext::current().thread_world().rank] = std::move(mine);
  });
  return weights;
}

bool same_bits(const at::Tensor& one, const at::Tensor& other) {
  return at::equal(one.view(at::kInt), other.view(at::kInt));
}

TEST_F(TrainingMemory, ComesToTheSameBits) {
  TensorMemory::switch_off();
  const auto plain = weights_by_rank();
  TensorMemory::install();
  set_device_limit(std::int64_t{64} << 20);
  const auto counted = weights_by_rank();
  EXPECT_GT(TensorMemory::reports().back().num_allocations, 100);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(plain.at(rank).size(), counted.at(rank).size());
    for (std::size_t i = 0; i < plain.at(rank).size(); ++i) {
      EXPECT_TRUE(same_bits(plain.at(rank)[i], counted.at(rank)[i])) << "rank " << rank << ", weight " << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::sim
