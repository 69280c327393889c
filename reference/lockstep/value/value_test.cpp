#include "lockstep/value/value.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/value/thrown_message.h"

namespace lockstep {
namespace {

TEST(Value, ConvertsFromWhatItHolds) {
  EXPECT_TRUE(Value().is_none());
  EXPECT_TRUE(Value(nullptr).is_none());
  EXPECT_TRUE(Value(at::Tensor()).is_none());
  EXPECT_EQ(Value(true).kind(), Value::Kind::boolean);
  EXPECT_EQ(Value(3).integer(), 3);
  EXPECT_EQ(Value(2.5F).real(), 2.5);
  EXPECT_EQ(Value("a").string(), "a");
  EXPECT_EQ(Value(Value::Bytes{1, 2}).bytes().size(), 2U);
  EXPECT_TRUE(Value(at::ones({2})).is_tensor());
  EXPECT_EQ(Value::list_of(std::vector<int>{4, 5}), Value::list({4, 5}));
  EXPECT_EQ(Value(3).number(), 3.0);
}

TEST(Value, IsReachedByKeyFieldAndIndex) {
  const auto x = at::ones({2});
  const auto value = Value::dict({{"x", x}, {7, Value::tuple({1, "a"})}, {"p", Value::named_tuple("P", {{"u", 1}})}});
  EXPECT_TRUE(value["x"].tensor().is_same(x));
  EXPECT_EQ(value[7][1].string(), "a");
  EXPECT_EQ(value["p"]["u"], value["p"][0]);
  EXPECT_TRUE(value.contains("x"));
  EXPECT_EQ(value.find("y"), nullptr);
  EXPECT_EQ(value.size(), 3U);
}

TEST(Value, KeepsTheFirstPlaceAndTheLastValueOfARepeatedKey) {
  EXPECT_EQ(Value::dict({{"b", 1}, {"a", 2}, {"b", 3}}), Value::dict({{"b", 3}, {"a", 2}}));
}

TEST(Value, CopiesAreIndependent) {
  const auto original = Value::list({Value::dict({{"x", 1}})});
  auto copy = original;
  copy.append(2);
  auto entry = original[0];
  entry.set("x", 5);
  entry.set("y", 6);
  EXPECT_EQ(original, Value::list({Value::dict({{"x", 1}})}));
  EXPECT_EQ(entry, Value::dict({{"x", 5}, {"y", 6}}));
}

TEST(Value, EqualsBitForBit) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Value(nan), Value(nan));
  EXPECT_NE(Value(0.0), Value(-0.0));
  EXPECT_NE(Value(1), Value(1.0));
  EXPECT_NE(Value(1), Value(true));
  EXPECT_EQ(Value(at::full({2}, nan)), Value(at::full({2}, nan)));
  EXPECT_NE(Value(at::ones({2})), Value(at::ones({2, 1})));
  EXPECT_NE(Value(at::ones({2})), Value(at::ones({2}, at::kDouble)));
  EXPECT_EQ(Value(at::arange(4).reshape({2, 2}).t()), Value(at::tensor({0, 2, 1, 3}, at::kLong).reshape({2, 2})));
  EXPECT_EQ(Value(at::empty({2}, at::kMeta)), Value(at::empty({2}, at::kMeta)));
  EXPECT_NE(Value(at::empty({2}, at::kMeta)), Value(at::ones({2})));
}

TEST(Value, EqualsByKindNamesAndOrder) {
  EXPECT_NE(Value::list({1}), Value::tuple({1}));
  EXPECT_NE(Value::tuple({1}), Value::named_tuple("P", {{"x", 1}}));
  EXPECT_NE(Value::named_tuple("P", {{"x", 1}}), Value::named_tuple("Q", {{"x", 1}}));
  EXPECT_NE(Value::named_tuple("P", {{"x", 1}}), Value::named_tuple("P", {{"y", 1}}));
  EXPECT_NE(Value::dict({{"a", 1}, {"b", 1}}), Value::dict({{"b", 1}, {"a", 1}}));
  EXPECT_NE(Value::dict({{"1", 0}}), Value::dict({{1, 0}}));
}

TEST(Value, HandsAnOpaqueObjectThrough) {
  const auto object = std::make_shared<const std::string>("tokenizer");
  const auto value = Value::opaque(object, "Tokenizer");
  EXPECT_EQ(value.object<std::string>(), object);
  EXPECT_EQ(value, Value(value));
  EXPECT_NE(value, Value::opaque(std::make_shared<const std::string>("tokenizer"), "Tokenizer"));
  EXPECT_EQ(value.type_name(), "Tokenizer");
  EXPECT_THROW((void)value.object<int>(), TypeError);
}

TEST(Value, NamesWhatWasExpectedAndWhatCame) {
  EXPECT_EQ(thrown_message<TypeError>([] { (void)Value("a").tensor(); }), "Value::tensor: expected tensor, got string");
  EXPECT_EQ(thrown_message<TypeError>([] { (void)Value::named_tuple("P", {}).integer(); }),
            "Value::integer: expected int, got named tuple P");
  EXPECT_EQ(thrown_message<KeyError>([] {
              Value::dict({{"x", 1}, {2, 1}})["y"];
            }),
            "dict: expected one of \"x\", 2, got \"y\"");
  EXPECT_EQ(thrown_message<KeyError>([] { Value::dict({})[3]; }), "dict: expected one of nothing, it is empty, got 3");
  EXPECT_EQ(thrown_message<KeyError>([] {
              Value::named_tuple("P", {{"x", 1}})["z"];
            }),
            "named tuple P: expected one of x, got z");
  EXPECT_EQ(thrown_message<OutOfRange>([] {
              Value::list({1, 2})[2];
            }),
            "list: expected an index from 0 and below 2, got 2");
  EXPECT_THROW(Value::list({1})[-1], OutOfRange);
  EXPECT_THROW(Value(1)["x"], TypeError);
  EXPECT_THROW(Value{std::numeric_limits<std::uint64_t>::max()}, InvalidArgument);
  EXPECT_THROW(Value::named_tuple("P", {{"x", 1}, {"x", 2}}), InvalidArgument);
}

TEST(Value, ReadsShortInMessages) {
  const auto point = Value::named_tuple("P", {{"u", 2.0}});
  const auto value = Value::dict({{"x", at::ones({2, 1})}, {3, Value::tuple({true})}, {"p", point}});
  EXPECT_EQ(to_text(value), "{\"x\": tensor<float32>[2, 1]{1.0, 1.0}, 3: (true,), \"p\": P(u=2.0)}");
  EXPECT_EQ(to_text(Value::list({Value(), Value::Bytes{1}, at::zeros({3, 3})})),
            "[none, bytes[1], tensor<float32>[3, 3]]");
  EXPECT_NE(to_text(Value::list(std::vector<Value>(100))).find("... (100 in all)"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
