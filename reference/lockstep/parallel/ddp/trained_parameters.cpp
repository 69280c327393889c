#include "lockstep/parallel/ddp/trained_parameters.h"

#include <torch/csrc/autograd/functions/utils.h>
#include <torch/nn/module.h>

#include <unordered_set>

namespace lockstep::parallel {
namespace {

// Notes that a parameter has its gradient of this backward.
class ReadyHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit ReadyHook(std::shared_ptr<std::atomic<bool>> ready) : ready_(std::move(ready)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    ready_->store(true, std::memory_order_relaxed);
    return outputs;
  }

 private:
  std::shared_ptr<std::atomic<bool>> ready_;
};

}  // namespace

std::vector<TrainedParameter> trained_parameters(const torch::nn::Module& model) {
  std::vector<TrainedParameter> trained;
  std::unordered_set<const at::TensorImpl*> seen;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad() || !seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
    TrainedParameter parameter{.name = item.key(), .tensor = item.value()};
    parameter.accumulator = torch::autograd::impl::grad_accumulator(parameter.tensor);
    parameter.accumulator->add_post_hook(std::make_unique<ReadyHook>(parameter.ready));
    trained.push_back(std::move(parameter));
  }
  return trained;
}

std::vector<at::Tensor> tensors_of(const std::vector<TrainedParameter>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

}  // namespace lockstep::parallel
