#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <vector>

#include "lockstep/comm/reduce_op.h"

namespace lockstep::comm {

using Tensors = std::vector<at::Tensor>;

/// Something to be overwritten, with no value that a sample has.
at::Tensor blank(at::ScalarType dtype, at::IntArrayRef shape);
Tensors blanks(int count, at::ScalarType dtype, at::IntArrayRef shape);

/// A rank's tensor, which every other rank can compute as well: small whole numbers, exact in every dtype.
at::Tensor sample(int rank, at::ScalarType dtype, at::IntArrayRef shape);
/// Those of ranks 0 to size - 1.
Tensors samples(int size, at::ScalarType dtype, at::IntArrayRef shape);
/// As `sample`, of ones and few twos, whose product over 16 ranks is exact in every dtype.
at::Tensor factors(int rank, at::ScalarType dtype, at::IntArrayRef shape);

/// The reduction of what the ranks brought, computed here in double precision (bitwise operations in int64).
at::Tensor reduction_of(const Tensors& tensors, ReduceOp op);

/// Equal shape, dtype and bits, whatever the dtype.
testing::AssertionResult same_bits(const at::Tensor& actual, const at::Tensor& expected);
/// Equal shape and dtype; values to one rounding of the dtype.
testing::AssertionResult same_values(const at::Tensor& actual, const at::Tensor& expected);

}  // namespace lockstep::comm
