#pragma once

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <functional>
#include <numeric>
#include <vector>

#include "lockstep/comm/comm_test_support.h"
#include "lockstep/comm/operations.h"

// What the tests of the operations share: worlds of three, and tensors as lists of numbers.
namespace lockstep::comm {

using Numbers = std::vector<double>;
using Rows = std::vector<Numbers>;

constexpr int kRanks = 3;

inline void check_on_threads(const std::function<void(TestRank&)>& check, int size = kRanks) {
  run_ranks({.size = size}, check);
}

inline void check_over_gloo(const std::vector<std::function<void(TestRank&)>>& checks) {
  at::set_num_threads(1);  // so that this process can be forked
  run_ranks({.backend = "gloo", .size = kRanks}, [&checks](TestRank& me) {
    for (const auto& check : checks) check(me);
  });
}

inline at::Tensor tensor_of(const Numbers& numbers, at::ScalarType dtype = at::kFloat) {
  return at::tensor(numbers, at::kDouble).to(dtype);
}

inline Numbers numbers_in(const at::Tensor& tensor) {
  const auto flat = tensor.detach().to(at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

inline void expect_tensor(const Value& value, const Numbers& numbers, const std::vector<std::int64_t>& shape) {
  ASSERT_TRUE(value.is_tensor()) << value;
  EXPECT_EQ(numbers_in(value.tensor()), numbers);
  EXPECT_EQ(value.tensor().sizes().vec(), shape);
}

inline bool is_same(const Value& value, const at::Tensor& tensor) { return value.tensor().is_same(tensor); }

/// The same ranks once more, with a group that compares shapes before it sends.
inline ProcessGroup debug_group(TestRank& me) {
  std::vector<int> everyone(static_cast<std::size_t>(me.size));
  std::iota(everyone.begin(), everyone.end(), 0);
  return ProcessGroup::create(me.store, everyone, me.rank,
                              {.backend = me.group.backend(),
                               .name = "debug",
                               .timeout = me.group.timeout(),
                               .network_interface = me.group.backend() == "gloo" ? "lo" : "",
                               .debug = true},
                              me.account, me.failures);
}

inline std::int64_t num_collectives(const TestRank& me) { return me.account->traffic().total().calls; }

}  // namespace lockstep::comm
