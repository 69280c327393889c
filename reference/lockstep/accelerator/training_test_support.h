#pragma once

#include <ATen/Functions.h>
#include <torch/data/example.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/convert_parameters.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/data/data_loader.h"

// The comparison that data parallelism is for: N ranks with batches of b, and one process with batches of N b in the
// same order, come to the same parameters (NUM-001, NUM-002).
namespace lockstep::test {

/// One parameter: y = w x.
struct Weight : torch::nn::Module {
  explicit Weight(double value = 1.0) { w = register_parameter("w", at::full({1}, value)); }
  at::Tensor forward(const at::Tensor& x) { return w * x; }
  [[nodiscard]] double gradient() const { return w.grad().item<double>(); }
  at::Tensor w;
};

/// A small net without dropout or batch statistics, the same in every run.
struct Perceptron : torch::nn::Module {
  explicit Perceptron(at::ScalarType dtype) {
    hidden = register_module("hidden", torch::nn::Linear(5, 16));
    output = register_module("output", torch::nn::Linear(16, 3));
    to(dtype);
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      parameter.copy_(at::arange(parameter.numel(), at::kDouble).mul(1.7).sin().mul(0.4).view(parameter.sizes()));
    }
  }
  at::Tensor forward(const at::Tensor& x) { return output->forward(at::tanh(hidden->forward(x))); }
  torch::nn::Linear hidden{nullptr};
  torch::nn::Linear output{nullptr};
};

/// Points of a smooth function of 5 variables with 3 values.
struct Points {
  std::int64_t count;
  at::ScalarType dtype;

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(count); }
  [[nodiscard]] torch::data::Example<> get(std::size_t index) const {
    const auto x = at::arange(5, at::kDouble).mul(0.9).add(1.3 * static_cast<double>(index)).cos();
    const auto y = at::stack({x.sum(), x[0] * x[1], x[2].square()});
    return {x.to(dtype), y.to(dtype)};
  }
};

enum class Method { sgd, adamw };

struct Recipe {
  at::ScalarType dtype = at::kDouble;
  Method method = Method::sgd;
  int accumulation = 1;
  int steps = 50;

  [[nodiscard]] std::string name() const {
    return std::string(dtype == at::kDouble ? "float64" : "fp32") + (method == Method::sgd ? " SGD" : " AdamW") +
           (accumulation > 1 ? " accumulating " + std::to_string(accumulation) : "");
  }
  /// Of one rank.
  static constexpr std::int64_t kBatch = 4;
  static constexpr int kStepsPerPass = 10;
  [[nodiscard]] Points points(int world_size) const {
    return {kBatch * world_size * accumulation * kStepsPerPass, dtype};
  }
  [[nodiscard]] std::shared_ptr<torch::optim::Optimizer> optimizer(const std::vector<at::Tensor>& parameters) const {
    if (method == Method::adamw) {
      return std::make_shared<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(1e-2));
    }
    return std::make_shared<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.05).momentum(0.9));
  }
};

/// All parameters as one vector, by the number of steps after which they were so: after 10, and after the last.
using Course = std::map<int, at::Tensor>;

inline void note(Course& course, const Recipe& recipe, int step, const torch::nn::Module& net) {
  if (step != 10 && step != recipe.steps) return;
  course[step] = torch::nn::utils::parameters_to_vector(net.parameters()).detach().clone();
}

/// One process, in plain LibTorch: no Accelerator, no loader. @param in_one  each window as a single batch
inline Course train_alone(const Recipe& recipe, int world_size, bool in_one = false) {
  Perceptron net(recipe.dtype);
  const auto optimizer = recipe.optimizer(net.parameters());
  const auto points = recipe.points(world_size);
  const int windows = in_one ? 1 : recipe.accumulation;
  const auto batch = Recipe::kBatch * world_size * (recipe.accumulation / windows);
  Course course;
  std::size_t next = 0;
  for (int step = 1; step <= recipe.steps; ++step) {
    optimizer->zero_grad();
    for (int micro_step = 0; micro_step < windows; ++micro_step) {
      std::vector<at::Tensor> x, y;
      for (std::int64_t i = 0; i < batch; ++i) {
        const auto point = points.get(next++ % points.size());
        x.push_back(point.data);
        y.push_back(point.target);
      }
      (at::mse_loss(net.forward(at::stack(x)), at::stack(y)) / windows).backward();
    }
    optimizer->step();
    note(course, recipe, step, net);
  }
  return course;
}

/// This rank among others, as a user writes it. @param averages  false: gradients stay each rank's own
inline Course train_together(const Recipe& recipe, bool averages = true,
                             const config::DistributedDataParallelKwargs& kwargs = {}) {
  Accelerator accelerator({.gradient_accumulation_steps = recipe.accumulation, .cpu = true, .ddp_kwargs = kwargs});
  const auto net = std::make_shared<Perceptron>(recipe.dtype);
  auto [model, optimizer, loader] =
      accelerator.prepare(net, recipe.optimizer(net->parameters()),
                          data::DataLoader(recipe.points(accelerator.num_processes()), {.batch_size = Recipe::kBatch}));
  Course course;
  int step = 0;
  while (step < recipe.steps) {
    for (const Value& batch : *loader) {
      const auto window = accelerator.accumulate(model);
      std::optional<Accumulation> local;
      if (!averages) local.emplace(accelerator.no_sync(model));
      accelerator.backward(at::mse_loss(model(batch[0].tensor()), batch[1].tensor()));
      optimizer->step();
      optimizer->zero_grad();
      if (accelerator.sync_gradients()) note(course, recipe, ++step, *net);
    }
  }
  return course;
}

/// The largest deviation from `expected` in units of what is tolerated: at most 1 passes.
inline double deviation(const at::Tensor& actual, const at::Tensor& expected, double rtol, double atol) {
  return ((actual - expected).abs() / (atol + rtol * expected.abs())).max().item<double>();
}

/// ||actual - expected|| / ||expected||
inline double relative_distance(const at::Tensor& actual, const at::Tensor& expected) {
  return ((actual - expected).norm() / expected.norm()).item<double>();
}

}  // namespace lockstep::test
