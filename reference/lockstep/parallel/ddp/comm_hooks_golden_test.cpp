// What DDP's communication hooks made of the same gradients under PyTorch, in fixtures/golden/comm_hooks.json.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "lockstep/parallel/ddp/ddp_test_support.h"
#include "run_ranks.h"

namespace lockstep::parallel {
namespace {

using config::DdpCommunicationHookType;
using nlohmann::json;
using test::Wrapped;

const json& recorded() {
  static const json document = json::parse(std::ifstream(LOCKSTEP_FIXTURES "/golden/comm_hooks.json"));
  return document;
}

at::ScalarType dtype_of(const json& parameter) { return parameter[2] == "float64" ? at::kDouble : at::kFloat; }

at::Tensor tensor_of(const json& parameter, const std::string& hex) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  const auto shape = parameter[1].get<std::vector<std::int64_t>>();
  return at::from_blob(bytes.data(), shape, at::TensorOptions(dtype_of(parameter))).clone();
}

/// Its loss is the sum of parameter times input: the inputs are the gradients.
struct Products : torch::nn::Module {
  Products() {
    for (const auto& parameter : recorded()["parameters"]) {
      const auto shape = parameter[1].get<std::vector<std::int64_t>>();
      rows.push_back(register_parameter(parameter[0].get<std::string>(), at::ones(shape, dtype_of(parameter))));
    }
  }
  at::Tensor forward(const std::vector<at::Tensor>& inputs) {
    at::Tensor sum = at::zeros({});
    for (std::size_t i = 0; i < rows.size(); ++i) sum = sum + (rows[i] * inputs[i]).sum();
    return sum;
  }
  std::vector<at::Tensor> rows;
};

DdpCommunicationHookType hook_of(const std::string& word) {
  static const std::map<std::string, DdpCommunicationHookType> hooks{
      {"no", DdpCommunicationHookType::no},
      {"fp16", DdpCommunicationHookType::fp16},
      {"bf16", DdpCommunicationHookType::bf16},
      {"power_sgd", DdpCommunicationHookType::power_sgd},
      {"batched_power_sgd", DdpCommunicationHookType::batched_power_sgd}};
  return hooks.at(word);
}

config::PowerSgdOptions options_of(const json& given) {
  config::PowerSgdOptions options;
  const auto take = [&given](const char* name, auto& field) { field = given.value(name, field); };
  take("matrix_approximation_rank", options.matrix_approximation_rank);
  take("start_powerSGD_iter", options.start_powerSGD_iter);
  take("min_compression_rate", options.min_compression_rate);
  take("use_error_feedback", options.use_error_feedback);
  take("warm_start", options.warm_start);
  take("orthogonalization_epsilon", options.orthogonalization_epsilon);
  take("random_seed", options.random_seed);
  take("batch_tensors_with_same_shape", options.batch_tensors_with_same_shape);
  return options;
}

std::vector<at::Tensor> tensors_of(const json& row) {
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < row.size(); ++i) tensors.push_back(tensor_of(recorded()["parameters"][i], row[i]));
  return tensors;
}

void expect_recorded(const json& record) {
  SCOPED_TRACE(record["hook"].dump() + record.value("wrapper", "") + record.value("options", json()).dump());
  const auto hook = hook_of(record["hook"]);
  const bool same_bits = !record.contains("options");  // no product of matrices, whose sums differ between machines
  const Wrapped wrapped(std::make_shared<Products>(),
                        {.gradient_as_bucket_view = record.value("gradient_as_bucket_view", false),
                         .comm_hook = hook,
                         .comm_wrapper = hook_of(record.value("wrapper", "no")),
                         .comm_state_option = options_of(record.value("options", json::object()))});
  const auto& local = recorded()["local"];
  for (std::size_t step = 0; step < local.size(); ++step) {
    wrapped.forget_gradients();
    wrapped.backward(wrapped.model(tensors_of(local[step][static_cast<std::size_t>(test::world().rank())])));
    const auto expected = tensors_of(record["gradients"][step]);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto& gradient = wrapped.net->rows[i].grad();
      ASSERT_EQ(gradient.scalar_type(), expected[i].scalar_type());
      if (same_bits) {
        ASSERT_TRUE(at::equal(gradient, expected[i])) << "step " << step << " parameter " << i;
      } else {
        ASSERT_TRUE(at::allclose(gradient, expected[i], /*rtol=*/1e-5, /*atol=*/1e-5))
            << "step " << step << " parameter " << i << "\n"
            << gradient - expected[i];
      }
    }
  }
}

TEST(DDP_009, GradientsAfterEachHookArePyTorchs) {
  lockstep::test::run_thread_ranks(2, [] {
    int compared = 0;
    for (const auto& record : recorded()["records"]) {
      expect_recorded(record);
      if (testing::Test::HasFatalFailure()) return;
      ++compared;
    }
    if (test::world().rank() == 0) std::cout << "compared " << compared << " hooks over 10 steps\n";
    EXPECT_EQ(compared, 21);
  });
}

}  // namespace
}  // namespace lockstep::parallel
