#include "lockstep/value/arbitrary_value.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <limits>

namespace lockstep::value {

namespace {

namespace gen = rc::gen;

rc::Gen<std::string> arbitrary_text() {
  const auto odd =
      gen::element<std::string>("NaN", "Infinity", "-Infinity", "t", "tuple", "named", "b64", "set", "error", "map",
                                "string", "lockstep::Value", "\xC3\xA9", "a b", std::string(1, '\0'));
  const auto plain = gen::resize(5, gen::container<std::string>(gen::inRange('a', 'f')));
  return gen::oneOf(odd, plain);
}

rc::Gen<Value::Key> arbitrary_key() {
  return gen::oneOf(gen::map(arbitrary_text(), [](std::string text) { return Value::Key(std::move(text)); }),
                    gen::map(gen::inRange(-3, 4), [](int number) { return Value::Key(number); }));
}

rc::Gen<double> arbitrary_double() {
  constexpr auto kInfinity = std::numeric_limits<double>::infinity();
  constexpr auto kNaN = std::numeric_limits<double>::quiet_NaN();
  return gen::oneOf(gen::arbitrary<double>(), gen::element(0.0, -0.0, 2.0, 1e300, kInfinity, -kInfinity, kNaN));
}

template <typename T>
rc::Gen<Value> as_value(rc::Gen<T> source) {
  return gen::map(std::move(source), [](T held) { return Value(std::move(held)); });
}

rc::Gen<Value> arbitrary_leaf(const std::vector<at::ScalarType>& dtypes) {
  return gen::oneOf(gen::just(Value()), as_value(gen::arbitrary<bool>()), as_value(gen::arbitrary<std::int64_t>()),
                    as_value(arbitrary_double()), as_value(arbitrary_text()),
                    as_value(gen::resize(5, gen::arbitrary<Value::Bytes>())), as_value(arbitrary_tensor(dtypes)));
}

/// Up to three of them, from the first case on: RapidCheck lets ranges grow slowly.
template <typename T>
rc::Gen<std::vector<T>> few(const rc::Gen<T>& source) {
  return gen::mapcat(gen::resize(rc::kNominalSize, gen::inRange<std::size_t>(0, 4)),
                     [source](std::size_t count) { return gen::container<std::vector<T>>(count, source); });
}

Value named_tuple(const std::string& name, std::vector<Value> items) {
  std::vector<Value::Field> fields;
  for (auto& item : items) fields.emplace_back("f" + std::to_string(fields.size()), std::move(item));
  return Value::named_tuple(name, std::move(fields));
}

rc::Gen<Value> arbitrary_nested(const rc::Gen<Value>& child) {
  return gen::oneOf(gen::map(few(child), &Value::list), gen::map(few(child), &Value::tuple),
                    gen::map(few(gen::pair(arbitrary_key(), child)), &Value::dict),
                    gen::apply(&named_tuple, arbitrary_text(), few(child)));
}

}  // namespace

at::Tensor seeded_tensor(at::IntArrayRef shape, at::ScalarType dtype, std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  if (!at::isFloatingType(dtype)) return at::randint(-2, 3, shape, generator, at::TensorOptions(at::kLong)).to(dtype);
  auto numbers = at::randn(shape, generator, at::TensorOptions(at::kDouble));
  // float8_e4m3fn has no infinities: they become NaN, the negative one a NaN with a sign, which JSON does not keep.
  const auto special = at::randint(0, 12, shape, generator, at::TensorOptions(at::kLong));
  numbers.masked_fill_(special.eq(0), std::numeric_limits<double>::infinity());
  if (dtype != at::kFloat8_e4m3fn) numbers.masked_fill_(special.eq(1), -std::numeric_limits<double>::infinity());
  numbers.masked_fill_(special.eq(2), std::numeric_limits<double>::quiet_NaN());
  return numbers.to(dtype);
}

rc::Gen<at::Tensor> arbitrary_tensor(const std::vector<at::ScalarType>& dtypes) {
  const auto of_shape = [](const std::vector<std::int64_t>& shape, at::ScalarType dtype, std::uint64_t seed) {
    return seeded_tensor(shape, dtype, seed);
  };
  return gen::apply(of_shape, few(gen::inRange<std::int64_t>(0, 4)), gen::elementOf(dtypes),
                    gen::arbitrary<std::uint64_t>());
}

rc::Gen<Value> arbitrary_value(const std::vector<at::ScalarType>& dtypes) {
  auto value = arbitrary_leaf(dtypes);
  for (int depth = 0; depth < 3; ++depth) {
    value = gen::weightedOneOf<Value>({{1, arbitrary_leaf(dtypes)}, {2, arbitrary_nested(value)}});
  }
  return value;
}

}  // namespace lockstep::value
