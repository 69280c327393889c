#include "lockstep/precision/fp8_linear.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::precision {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Products here choose their precision themselves.
struct NoAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::autocast_dispatch_keyset};
};

ScaledTensor unscaled(const at::Tensor& tensor, at::ScalarType dtype) { return {.values = tensor.to(dtype)}; }
ScaledTensor transposed(const ScaledTensor& tensor) { return {.values = tensor.values.t(), .scale = tensor.scale}; }

// Float8 numbers are float32 numbers too, so that only sums are rounded. @return [m, n], float32
at::Tensor product(const ScaledTensor& a, const ScaledTensor& b) {
  const double unscale = 1.0 / (static_cast<double>(a.scale) * static_cast<double>(b.scale));
  return at::mm(a.values.to(at::kFloat), b.values.to(at::kFloat)).mul_(unscale);
}

class Fp8Linear final : public torch::autograd::Function<Fp8Linear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const Fp8LayerPtr& layer, at::ScalarType dtype,
                            bool remembers) {
    const NoAutocast no_autocast;
    const auto cast = [remembers](DelayedScaling& scaling, const at::Tensor& tensor) {
      return remembers ? scaling(tensor) : scaling.without_trace(tensor);
    };
    const auto x8 = cast(layer->input, input);
    const auto w8 = cast(layer->weight, weight);
    const auto x = unscaled(input, dtype);
    const auto w = unscaled(weight, dtype);
    const auto& keep_out = layer->override_precision;
    save(context, keep_out.wgrad ? x : x8, keep_out.dgrad ? w : w8);
    context->saved_data["layer"] = c10::IValue::make_capsule(layer);
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["dtype"] = static_cast<std::int64_t>(dtype);

    auto output = keep_out.fprop ? product(x, transposed(w)) : product(x8, transposed(w8));
    if (bias) output += *bias;
    return output.to(dtype);
  }

  // Autograd itself brings each gradient to the dtype of what it belongs to.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const NoAutocast no_autocast;
    const auto& data = context->saved_data;
    const auto layer = c10::static_intrusive_pointer_cast<Fp8Layer>(data.at("layer").toCapsule());
    const auto dtype = static_cast<at::ScalarType>(data.at("dtype").toInt());
    const auto [x, w] = saved(context);
    const auto& gradient = gradients.front();
    const auto& keep_out = layer->override_precision;
    const auto g = unscaled(gradient, dtype);
    const auto g8 = keep_out.dgrad && keep_out.wgrad ? g : layer->gradient(gradient);

    variable_list result(6);  // forward's arguments; all but the first three are no tensors
    if (context->needs_input_grad(0)) result[0] = product(keep_out.dgrad ? g : g8, w);
    if (context->needs_input_grad(1)) result[1] = product(transposed(keep_out.wgrad ? g : g8), x);
    if (data.at("has_bias").toBool() && context->needs_input_grad(2)) result[2] = gradient.to(at::kFloat).sum(0);
    return result;
  }

 private:
  static void save(AutogradContext* context, const ScaledTensor& x, const ScaledTensor& w) {
    context->save_for_backward({x.values, w.values});
    context->saved_data["input_scale"] = x.scale;
    context->saved_data["weight_scale"] = w.scale;
  }
  static std::pair<ScaledTensor, ScaledTensor> saved(AutogradContext* context) {
    const auto values = context->get_saved_variables();
    const auto scale = [context](const char* name) {
      return static_cast<float>(context->saved_data.at(name).toDouble());
    };
    return {{.values = values[0], .scale = scale("input_scale")},
            {.values = values[1], .scale = scale("weight_scale")}};
  }
};

}  // namespace

at::Tensor fp8_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                      const Fp8LayerPtr& layer, at::ScalarType dtype) {
  const bool remembers = at::GradMode::is_enabled();
  const auto rows = input.reshape({-1, input.size(-1)});
  auto sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  const auto bias_if_any = bias.defined() ? std::optional(bias) : std::nullopt;
  return Fp8Linear::apply(rows, weight, bias_if_any, layer, dtype, remembers).view(sizes);
}

Fp8Layers::Fp8Layers(const torch::nn::Module& model, const Fp8Recipe& recipe) {
  for (const auto& module : model.modules()) {
    const auto* const linear = module->as<torch::nn::LinearImpl>();
    if (linear == nullptr || find(linear->weight)) continue;
    layers_.push_back({linear->weight, c10::make_intrusive<Fp8Layer>(recipe)});
  }
}

Fp8LayerPtr Fp8Layers::find(const at::Tensor& weight) const {
  const auto is_it = [&weight](const Entry& entry) {
    return entry.weight.is_alias_of(weight) && entry.weight.storage_offset() == weight.storage_offset() &&
           entry.weight.sizes() == weight.sizes() && entry.weight.strides() == weight.strides();
  };
  const auto found = std::ranges::find_if(layers_, is_it);
  return found == layers_.end() ? Fp8LayerPtr() : found->layer;
}

}  // namespace lockstep::precision
