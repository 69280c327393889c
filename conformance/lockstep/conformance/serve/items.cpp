#include "lockstep/conformance/serve/items.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace lockstep::conformance {
namespace {

at::Tensor scalar(std::int64_t number) { return at::scalar_tensor(number, at::kLong); }

Indices as_indices(const at::Tensor& tensor) {
  const auto flat = tensor.reshape({-1}).to(at::kCPU, at::kLong).contiguous();
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

}  // namespace

at::Tensor as_tensor(const Indices& indices) { return at::tensor(indices, at::kLong); }

Items::Kind Items::kind_from(Arguments& loader) {
  static constexpr std::array<std::pair<std::string_view, Kind>, 7> kKinds = {{{"id", Kind::id},
                                                                               {"x1", Kind::x1},
                                                                               {"dict", Kind::dict},
                                                                               {"nested", Kind::nested},
                                                                               {"text", Kind::text},
                                                                               {"ragged", Kind::ragged},
                                                                               {"xy", Kind::xy}}};
  const auto word = loader.word("item", "id");
  const auto* const found = std::ranges::find(kKinds, word, &std::pair<std::string_view, Kind>::first);
  if (found == kKinds.end()) loader.refuse("item", "a kind of item");
  return found->second;
}

Items::Items(Arguments& loader) : kind_(kind_from(loader)) {
  auto data = loader.object("data");
  if (kind_ == Kind::xy) {
    const auto x = data.value("x"), t = data.value("t");
    if (!x.is_tensor() || !t.is_tensor()) loader.refuse("data", "the tensors x and t");
    x_ = x.tensor();
    t_ = t.tensor();
  }
  data.finish();
}

Value Items::item(std::int64_t i) const {
  switch (kind_) {
    case Kind::id: return scalar(i);
    case Kind::x1: return at::full({1}, i + 1, at::kFloat);
    case Kind::dict: return Value::dict({{"id", scalar(i)}, {"x", at::tensor({i + 0.0, i + 0.5}, at::kFloat)}});
    case Kind::nested: {
      auto y = Value::dict({{"y", at::full({1}, -i, at::kLong)}});
      auto quarter = at::scalar_tensor(static_cast<double>(i) / 4, at::kFloat);
      return Value::dict({{"id", scalar(i)}, {"pair", Value::list({quarter, std::move(y)})}});
    }
    case Kind::text: return Value::dict({{"id", scalar(i)}, {"s", "s" + std::to_string(i)}});
    case Kind::ragged: return at::full({1 + i % 3}, i, at::kFloat);
    case Kind::xy: return Value::dict({{"id", scalar(i)}, {"x", x_[i]}, {"t", t_[i]}});
  }
  throw Unsupported("item");
}

Indices Items::indices_of(const Value& batch) const {
  switch (kind_) {
    case Kind::id: return as_indices(batch.tensor());
    case Kind::x1: return as_indices(batch.tensor() - 1);
    case Kind::ragged: return as_indices(batch.tensor().select(-1, 0));
    default: return as_indices(batch["id"].tensor());
  }
}

}  // namespace lockstep::conformance
