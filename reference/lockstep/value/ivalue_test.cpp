#include "lockstep/value/ivalue.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/value/arbitrary_value.h"
#include "lockstep/value/thrown_message.h"

namespace lockstep::value {
namespace {

const std::vector<at::ScalarType> kDtypes = {
    at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kLong,
    at::kInt,    at::kShort, at::kChar, at::kByte,     at::kBool,          at::kComplexFloat};

TEST(IValue, IsOfTheKindThatLibTorchExpects) {
  EXPECT_TRUE(to_ivalue(Value()).isNone());
  EXPECT_TRUE(to_ivalue(Value::list({1, "a"})).isList());
  EXPECT_TRUE(to_ivalue(Value::tuple({1, "a"})).isTuple());
  EXPECT_TRUE(to_ivalue(Value::dict({{"x", at::ones({1})}})).isGenericDict());
}

TEST(IValue, IsReadWhenOthersMadeIt) {
  EXPECT_EQ(from_ivalue(c10::IValue(std::vector<std::int64_t>{1, 2})), Value::list({1, 2}));
  EXPECT_EQ(from_ivalue(c10::IValue(std::vector<at::Tensor>{at::ones({1})})), Value::list({at::ones({1})}));
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("x", at::ones({1}));
  EXPECT_EQ(from_ivalue(dict), Value::dict({{"x", at::ones({1})}}));
  const auto type = c10::TupleType::createNamed(c10::QualifiedName("__torch__.P"), std::vector<std::string>{"u"},
                                                std::vector<c10::TypePtr>{c10::IntType::get()});
  EXPECT_EQ(from_ivalue(c10::ivalue::Tuple::createNamed({c10::IValue(3)}, type)), Value::named_tuple("P", {{"u", 3}}));
  EXPECT_EQ(thrown_message<TypeError>([] { from_ivalue(c10::IValue(at::Device(at::kCPU))); }),
            "from_ivalue: expected a kind of Value, got Device");
}

TEST(IValue, RefusesOpaqueObjects) {
  const auto opaque = Value::opaque(std::make_shared<const int>(1), "Tokenizer");
  EXPECT_EQ(thrown_message<TypeError>([&] { to_bytes(Value::list({opaque})); }),
            "to_ivalue, [0]: expected a value that can be sent, got Tokenizer, an opaque object");
}

TEST(Bytes, KeepATupleThatBeginsWithTheMark) {
  const auto value = Value::tuple({"lockstep::Value", "bytes", "x"});
  EXPECT_EQ(from_bytes(to_bytes(value)), value);
}

TEST(Bytes, KeepElementsOfEveryDtype) {
  for (const auto dtype : kDtypes) {
    const auto value = Value(at::arange(6).reshape({2, 3}).to(dtype));
    EXPECT_EQ(from_bytes(to_bytes(value)), value) << dtype;
  }
}

TEST(Bytes, LeaveHistoryAndUnusedStorageBehind) {
  const auto large = at::ones({100000});
  const auto read = from_bytes(to_bytes(large.slice(0, 3, 5)));
  EXPECT_EQ(read, Value(at::ones({2})));
  EXPECT_LT(to_bytes(large.slice(0, 3, 5)).size(), 10000U);
  EXPECT_FALSE(from_bytes(to_bytes(at::ones({1}).requires_grad_())).tensor().requires_grad());
}

TEST(Bytes, OfSomethingElseAreRejected) {
  const auto message = thrown_message<InvalidArgument>([] { from_bytes({'a', 'b'}); });
  EXPECT_EQ(message.find("from_bytes: expected bytes that to_bytes made, got 2 others"), 0U);
  auto cut = to_bytes(Value::list({1, 2}));
  cut.resize(cut.size() / 2);
  EXPECT_THROW(from_bytes(cut), InvalidArgument);
}

RC_GTEST_PROP(IValue, ReadsBackWhatItMade, ()) {
  for (const auto& value : *rc::gen::container<std::vector<Value>>(10, arbitrary_value(kDtypes))) {
    RC_ASSERT(from_ivalue(to_ivalue(value)) == value);
  }
}

RC_GTEST_PROP(Bytes, ReadBackWhatWasWritten, ()) {
  for (const auto& value : *rc::gen::container<std::vector<Value>>(10, arbitrary_value(kDtypes))) {
    RC_ASSERT(from_bytes(to_bytes(value)) == value);
  }
}

}  // namespace
}  // namespace lockstep::value
