#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lockstep/conformance/serve/arguments.h"
#include "lockstep/value/value.h"

namespace lockstep::conformance {

using Indices = std::vector<std::int64_t>;

/// What the items of a data set are, and how the index list of a batch is read off its content.
class Items {
 public:
  /// Reads `item` and `data` of a LOADER.
  explicit Items(Arguments& loader);

  [[nodiscard]] Value item(std::int64_t index) const;
  /// The items that make up a batch, or an item handed out without batches.
  [[nodiscard]] Indices indices_of(const Value& batch) const;

 private:
  enum class Kind { id, x1, dict, nested, text, ragged, xy };
  static Kind kind_from(Arguments& loader);

  Kind kind_;
  at::Tensor x_, t_;  // of xy
};

/// int64, [number of indices]
at::Tensor as_tensor(const Indices& indices);

}  // namespace lockstep::conformance
