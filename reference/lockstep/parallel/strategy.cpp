#include "lockstep/parallel/strategy.h"

#include "lockstep/parallel/ddp/distributed_data_parallel.h"

namespace lockstep::parallel {

Strategy::~Strategy() = default;

namespace {

class SingleProcess final : public Strategy {
 public:
  std::shared_ptr<modules::ModelEngine> prepare(const std::shared_ptr<torch::nn::Module>&) override { return nullptr; }
};

class DataParallel final : public Strategy {
 public:
  explicit DataParallel(StrategyRequest request) : request_(std::move(request)) {}

  std::shared_ptr<modules::ModelEngine> prepare(const std::shared_ptr<torch::nn::Module>& model) override {
    return std::make_shared<DistributedDataParallel>(model, request_.group, request_.ddp);
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
