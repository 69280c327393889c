#include "lockstep/comm/capabilities.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/comm_test_support.h"

namespace lockstep::comm {
namespace {

TEST(Capabilities, ARefusalNamesOperationDtypeAndBackend) {
  const auto text =
      message_of<NotSupported>([] { Capabilities::gloo().require("allreduce", at::kShort, ReduceOp::sum); });
  EXPECT_CONTAINS(text, "allreduce: ");
  EXPECT_CONTAINS(text, "backend gloo can reduce: ");
  EXPECT_CONTAINS(text, "got Short");
  EXPECT_NO_THROW(Capabilities::threads().require("allreduce", at::kShort, ReduceOp::sum));
  EXPECT_THROW(Capabilities::threads().require("allreduce", at::kFloat8_e5m2, ReduceOp::sum), NotSupported);
}

// OPS-009: no mean of integers, whatever the backend would make of it.
TEST(Capabilities, NoBackendTakesTheMeanOfIntegers) {
  for (const auto& able : {Capabilities(), Capabilities::gloo(), Capabilities::threads()}) {
    for (const auto dtype : {at::kLong, at::kByte, at::kBool}) {
      const auto text = message_of<RuntimeError>([&] { able.require("reduce", dtype, ReduceOp::avg); });
      EXPECT_CONTAINS(text, "for a mean");
      EXPECT_CONTAINS(text, c10::toString(dtype));
    }
    EXPECT_NO_THROW(able.require("reduce", at::kHalf, ReduceOp::avg));
  }
}

TEST(Capabilities, ComplexNumbersAreSummedAndNotCompared) {
  for (const auto& able : {Capabilities(), Capabilities::gloo(), Capabilities::threads()}) {
    EXPECT_NO_THROW(able.require("allreduce", at::kComplexFloat, ReduceOp::sum));
    EXPECT_NO_THROW(able.require("allreduce", at::kComplexDouble, ReduceOp::avg));
    for (const auto op : {ReduceOp::product, ReduceOp::min, ReduceOp::max}) {
      EXPECT_CONTAINS(message_of<NotSupported>([&] { able.require("allreduce", at::kComplexFloat, op); }),
                      std::string(to_word(op)) + " of ComplexFloat");
    }
  }
}

TEST(Capabilities, BitsAreThoseOfIntegers) {
  for (const auto op : {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor}) {
    EXPECT_NO_THROW(Capabilities::gloo().require("allreduce", at::kInt, op));
    EXPECT_NO_THROW(Capabilities::gloo().require("allreduce", at::kBool, op));
    EXPECT_CONTAINS(message_of<NotSupported>([&] { Capabilities::gloo().require("allreduce", at::kFloat, op); }),
                    to_word(op).data());
  }
}

TEST(Capabilities, UnknownDtypesTravelAsBytes) {
  const auto gloo = Capabilities::gloo();
  for (const auto dtype : {at::kShort, at::kFloat8_e4m3fn, at::kComplexFloat, at::kUInt16}) {
    EXPECT_TRUE(gloo.moves_as_bytes(dtype));
    EXPECT_NO_THROW(gloo.require("broadcast", dtype, {}));
  }
  EXPECT_FALSE(gloo.moves_as_bytes(at::kFloat));
  EXPECT_FALSE(Capabilities::threads().moves_as_bytes(at::kShort));
}

TEST(Capabilities, ReadWhatAPlugInDeclares) {
  const auto able = Capabilities::from_json("mine.so", R"({"name": "mine", "ops": {
      "allreduce": {"dtypes": ["Float"], "reduce_ops": ["sum"]}, "broadcast": {}}})");
  EXPECT_NO_THROW(able.require("allreduce", at::kFloat, ReduceOp::sum));
  EXPECT_NO_THROW(able.require("broadcast", at::kLong, {}));
  EXPECT_CONTAINS(message_of<NotSupported>([&] { able.require("allreduce", at::kDouble, ReduceOp::sum); }),
                  "mine.so can reduce: Float");
  EXPECT_CONTAINS(message_of<NotSupported>([&] { able.require("allreduce", at::kFloat, ReduceOp::max); }), "got max");
  EXPECT_CONTAINS(message_of<NotSupported>([&] { able.require("barrier"); }),
                  "mine.so, which does not have this operation");
}

TEST(Capabilities, RefuseWhatIsNoDescription) {
  for (const char* text : {"", "{", "[]", "{}", R"({"ops": 3})", R"({"ops": {"allreduce": {"dtypes": "Float"}}})",
                           R"({"ops": {"allreduce": {"reduce_ops": [1]}}})", R"({"ops": {"allreduce": 1}})"}) {
    const auto message = message_of<InvalidArgument>([&] { Capabilities::from_json("mine.so", text); });
    EXPECT_CONTAINS(message, "capabilities of backend mine.so");
  }
}

}  // namespace
}  // namespace lockstep::comm
