#include "lockstep/parallel/strategy.h"

#include <torch/nn/module.h>
#include <algorithm>

#include "lockstep/parallel/ddp/distributed_data_parallel.h"
#include "lockstep/parallel/ddp/verify_parameters.h"

namespace lockstep::parallel {

Strategy::~Strategy() = default;

std::unique_ptr<Join> Strategy::join(const std::vector<std::shared_ptr<modules::ModelEngine>>&, JoinDivisor) {
  return nullptr;
}

namespace {

class SingleProcess final : public Strategy {
 public:
  std::shared_ptr<modules::ModelEngine> prepare(const std::shared_ptr<torch::nn::Module>&) override { return nullptr; }
};

bool has_trained_parameters(const torch::nn::Module& model) {
  return std::ranges::any_of(model.parameters(), [](const at::Tensor& parameter) { return parameter.requires_grad(); });
}

class DataParallel final : public Strategy {
 public:
  explicit DataParallel(StrategyRequest request) : request_(std::move(request)) {}

  std::shared_ptr<modules::ModelEngine> prepare(const std::shared_ptr<torch::nn::Module>& model) override {
    if (request_.on_accelerator && !has_trained_parameters(*model)) {
      verify_parameters(*model, request_.group);  // the others, which may have some, are about to compare
      return nullptr;
    }
    return std::make_shared<DistributedDataParallel>(model, request_.group, request_.ddp);
  }

  std::unique_ptr<Join> join(const std::vector<std::shared_ptr<modules::ModelEngine>>& engines,
                             JoinDivisor divisor) override {
    std::vector<std::shared_ptr<DistributedDataParallel>> own;
    for (const auto& engine : engines) {
      if (auto one = std::dynamic_pointer_cast<DistributedDataParallel>(engine)) own.push_back(std::move(one));
    }
    return own.empty() ? nullptr : std::make_unique<Join>(std::move(own), request_.group, divisor);
  }

 private:
  StrategyRequest request_;
};

}  // namespace

std::unique_ptr<Strategy> make_strategy(const StrategyRequest& request) {
  if (!request.group) return std::make_unique<SingleProcess>();
  return std::make_unique<DataParallel>(request);
}

}  // namespace lockstep::parallel
