#include "lockstep/conformance/serve/models.h"

#include <ATen/Functions.h>

#include "lockstep/value/json.h"

namespace lockstep::conformance {
namespace {

/// Initial values by their names; each is taken once.
class Initial {
 public:
  explicit Initial(Arguments values) : values_(std::move(values)) {}

  at::Tensor take(const std::string& name) {
    const auto value = values_.value(name);
    if (!value.is_tensor()) values_.refuse(name, "a tensor");
    return value.tensor().clone();
  }
  void finish() const { values_.finish(); }

 private:
  Arguments values_;
};

/// y = w * x
class Scale final : public Model {
 public:
  explicit Scale(Initial& initial) : weight_(register_parameter("w", initial.take("w"))) {}
  at::Tensor forward(const at::Tensor& input, std::int64_t /*branch*/) override { return weight_ * input; }

 private:
  at::Tensor weight_;
};

struct Affine final : torch::nn::Module {
  Affine(const at::Tensor& initial_weight, const at::Tensor& initial_bias)
      : weight(register_parameter("weight", initial_weight)), bias(register_parameter("bias", initial_bias)) {}
  at::Tensor weight, bias;
};

/// Linear layers with ReLU between them.
class Mlp final : public Model {
 public:
  Mlp(Initial& initial, std::size_t num_layers) {
    for (std::size_t j = 0; j < num_layers; ++j) {
      const auto name = std::to_string(j);
      auto weight = initial.take(name + ".weight"), bias = initial.take(name + ".bias");
      layers_.push_back(register_module(name, std::make_shared<Affine>(weight, bias)));
    }
  }
  at::Tensor forward(const at::Tensor& input, std::int64_t /*branch*/) override {
    auto activation = input;
    for (std::size_t j = 0; j < layers_.size(); ++j) {
      if (j > 0) activation = at::relu(activation);
      activation = at::linear(activation, layers_[j]->weight, layers_[j]->bias);
    }
    return activation;
  }

 private:
  std::vector<std::shared_ptr<Affine>> layers_;
};

struct Branch final : torch::nn::Module {
  explicit Branch(const at::Tensor& initial) : weight(register_parameter("w", initial)) {}
  at::Tensor weight;
};

/// Several scales, of which a forward uses one.
class Unused final : public Model {
 public:
  Unused(Initial& initial, std::int64_t num_branches) {
    for (std::int64_t k = 0; k < num_branches; ++k) {
      const auto name = "b" + std::to_string(k);
      branches_.push_back(register_module(name, std::make_shared<Branch>(initial.take(name + ".w"))));
    }
  }
  at::Tensor forward(const at::Tensor& input, std::int64_t branch) override {
    if (branch < 0 || branch >= static_cast<std::int64_t>(branches_.size())) throw Unsupported("branch");
    return branches_[static_cast<std::size_t>(branch)]->weight * input;
  }

 private:
  std::vector<std::shared_ptr<Branch>> branches_;
};

/// y = relu(x wT) wT, of one parameter
class Tied final : public Model {
 public:
  explicit Tied(Initial& initial) : weight_(register_parameter("w", initial.take("w"))) {}
  at::Tensor forward(const at::Tensor& input, std::int64_t /*branch*/) override {
    // The transpose is taken twice, as the protocol writes it: under autocast each is rounded by itself.
    return at::matmul(at::relu(at::matmul(input, weight_.t())), weight_.t());
  }

 private:
  at::Tensor weight_;
};

class BatchNorm final : public Model {
 public:
  BatchNorm(Initial& initial, std::int64_t width)
      : weight_(register_parameter("weight", initial.take("weight"))),
        bias_(register_parameter("bias", initial.take("bias"))),
        mean_(register_buffer("running_mean", at::zeros({width}))),
        variance_(register_buffer("running_var", at::ones({width}))) {}
  at::Tensor forward(const at::Tensor& input, std::int64_t /*branch*/) override {
    return at::batch_norm(input, weight_, bias_, mean_, variance_, is_training(), /*momentum=*/0.1, /*eps=*/1e-5,
                          /*cudnn_enabled=*/false);
  }

 private:
  at::Tensor weight_, bias_, mean_, variance_;
};

std::size_t num_layers_from(Arguments& arguments) {
  const auto widths = arguments.integers("widths");
  if (widths.size() < 2) arguments.refuse("widths", "2 or more of them");
  return widths.size() - 1;
}

std::shared_ptr<Model> make_model(Arguments& arguments, Initial& initial) {
  const auto kind = arguments.word("kind");
  if (kind == "scale") return std::make_shared<Scale>(initial);
  if (kind == "mlp") return std::make_shared<Mlp>(initial, num_layers_from(arguments));
  if (kind == "unused") return std::make_shared<Unused>(initial, arguments.positive("branches"));
  if (kind == "tied") {
    static_cast<void>(arguments.optional_integer("d"));  // the weight has it too
    return std::make_shared<Tied>(initial);
  }
  if (kind == "batchnorm") return std::make_shared<BatchNorm>(initial, arguments.positive("d"));
  arguments.refuse("kind", "scale, mlp, unused, tied or batchnorm");
}

}  // namespace

ModelCase model_from(Arguments& arguments) {
  Initial initial(arguments.object("init"));
  auto model = make_model(arguments, initial);
  const bool prepare = arguments.flag("prepare", true);
  initial.finish();
  arguments.finish();
  return {.model = std::move(model), .prepare = prepare};
}

Json parameters_of(const torch::nn::Module& model) {
  auto all = Json::object();
  for (const auto& parameter : model.named_parameters()) all[parameter.key()] = value::to_json(parameter.value());
  return all;
}

Json gradients_of(const torch::nn::Module& model) {
  auto all = Json::object();
  for (const auto& parameter : model.named_parameters()) {
    const auto& gradient = parameter.value().grad();
    all[parameter.key()] = gradient.defined() ? value::to_json(gradient) : Json();
  }
  return all;
}

}  // namespace lockstep::conformance
