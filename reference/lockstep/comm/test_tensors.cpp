#include "lockstep/comm/test_tensors.h"

#include <ATen/Functions.h>

#include <sstream>

namespace lockstep::comm {
namespace {

template <typename At>
at::Tensor filled(at::ScalarType dtype, at::IntArrayRef shape, At&& at_index) {
  auto values = at::empty(shape, at::kDouble);
  for (std::int64_t i = 0; i < values.numel(); ++i) values.view(-1)[i] = static_cast<double>(at_index(i));
  if (c10::isComplexType(dtype)) return at::complex(values, values + 1).to(dtype);
  return values.to(dtype);
}

// As bytes, which all dtypes can be compared as.
at::Tensor bytes(const at::Tensor& tensor) { return tensor.contiguous().view(-1).view(at::kByte); }

at::Tensor combined(const at::Tensor& a, const at::Tensor& b, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg: return a + b;
    case ReduceOp::product: return a * b;
    case ReduceOp::min: return at::minimum(a, b);
    case ReduceOp::max: return at::maximum(a, b);
    case ReduceOp::band: return at::bitwise_and(a, b);
    case ReduceOp::bor: return at::bitwise_or(a, b);
    case ReduceOp::bxor: return at::bitwise_xor(a, b);
  }
  return {};
}

testing::AssertionResult differ(const at::Tensor& actual, const at::Tensor& expected) {
  std::ostringstream text;
  text << "got\n" << actual << "\nexpected\n" << expected;
  return testing::AssertionFailure() << text.str();
}

}  // namespace

at::Tensor blank(at::ScalarType dtype, at::IntArrayRef shape) { return at::full(shape, 7, at::kDouble).to(dtype); }

Tensors blanks(int count, at::ScalarType dtype, at::IntArrayRef shape) {
  Tensors list;
  for (int i = 0; i < count; ++i) list.push_back(blank(dtype, shape));
  return list;
}

at::Tensor sample(int rank, at::ScalarType dtype, at::IntArrayRef shape) {
  const bool is_signed = c10::isSignedType(dtype);
  return filled(dtype, shape, [&](std::int64_t i) { return (rank * 3 + i) % 5 - (is_signed ? 2 : 0); });
}

Tensors samples(int size, at::ScalarType dtype, at::IntArrayRef shape) {
  Tensors list;
  for (int rank = 0; rank < size; ++rank) list.push_back(sample(rank, dtype, shape));
  return list;
}

at::Tensor factors(int rank, at::ScalarType dtype, at::IntArrayRef shape) {
  return filled(dtype, shape, [&](std::int64_t i) { return (rank + i) % 4 == 0 ? 2 : 1; });
}

at::Tensor reduction_of(const Tensors& tensors, ReduceOp op) {
  const auto dtype = tensors.front().scalar_type();
  const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  const auto wide = bitwise ? at::kLong : c10::isComplexType(dtype) ? at::kComplexDouble : at::kDouble;
  auto result = tensors.front().to(wide);
  for (std::size_t i = 1; i < tensors.size(); ++i) result = combined(result, tensors[i].to(wide), op);
  if (op == ReduceOp::avg) result = result / static_cast<double>(tensors.size());
  return result.to(dtype);
}

testing::AssertionResult same_bits(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.scalar_type() == expected.scalar_type() && actual.sizes() == expected.sizes() &&
      at::equal(bytes(actual), bytes(expected))) {
    return testing::AssertionSuccess();
  }
  return differ(actual, expected);
}

testing::AssertionResult same_values(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.scalar_type() != expected.scalar_type() || actual.sizes() != expected.sizes())
    return differ(actual, expected);
  // bf16 has 8 bits: one rounding is at most 2^-8 of the value, two (sum, then division) twice that.
  const double tolerance = expected.scalar_type() == at::kBFloat16 ? 1.0 / 128
                           : expected.scalar_type() == at::kHalf   ? 1.0 / 1024
                                                                   : 1e-6;
  const auto wide = expected.is_complex() ? at::kComplexDouble : at::kDouble;
  if (at::allclose(actual.to(wide), expected.to(wide), tolerance, 0)) return testing::AssertionSuccess();
  return differ(actual, expected);
}

}  // namespace lockstep::comm
