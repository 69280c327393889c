#include "lockstep/value/json.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/value/arbitrary_value.h"
#include "lockstep/value/thrown_message.h"

namespace lockstep::value {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<at::ScalarType> kDtypes = {at::kDouble,        at::kFloat,       at::kHalf, at::kBFloat16,
                                             at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kLong, at::kInt,
                                             at::kShort,         at::kChar,        at::kByte, at::kBool};

std::string written(const Value& value) { return to_json(value).dump(); }
Value read_from(const std::string& text) { return from_json(Json::parse(text)); }

TEST(Json, WritesTheFormsOfTheProtocol) {
  EXPECT_EQ(written(Value::list({Value(), true, 2, 2.0, "a"})), R"([null,true,2,2.0,"a"])");
  EXPECT_EQ(written(at::ones({2, 1})), R"({"t":"float32","shape":[2,1],"data":[1.0,1.0]})");
  EXPECT_EQ(written(at::full({}, 3, at::kLong)), R"({"t":"int64","shape":[],"data":[3]})");
  EXPECT_EQ(written(at::ones({1}, at::kBool)), R"({"t":"bool","shape":[1],"data":[true]})");
  EXPECT_EQ(written(Value::tuple({1})), R"({"tuple":[1]})");
  EXPECT_EQ(written(Value::named_tuple("P", {{"b", 1}, {"a", 2}})), R"({"named":"P","fields":{"b":1,"a":2}})");
  EXPECT_EQ(written(Value::Bytes{'a', 'b'}), R"({"b64":"YWI="})");
  EXPECT_EQ(written(Value::dict({{"z", 1}, {"a", 2}})), R"({"z":1,"a":2})");
}

TEST(Json, WritesNumbersThatAreNotFiniteAsWords) {
  const auto infinity = std::numeric_limits<double>::infinity();
  const auto numbers = std::vector<double>{std::nan(""), infinity, -infinity};
  EXPECT_EQ(written(Value::list_of(numbers)), R"(["NaN","Infinity","-Infinity"])");
  EXPECT_EQ(written(at::tensor(numbers, at::kDouble).to(at::kHalf)),
            R"({"t":"float16","shape":[3],"data":["NaN","Infinity","-Infinity"]})");
  EXPECT_EQ(written("NaN"), R"({"string":"NaN"})");
}

TEST(Json, WritesADictThatLooksLikeAnotherFormAsAMap) {
  EXPECT_EQ(written(Value::dict({{1, "a"}, {"b", 2}})), R"({"map":[[1,"a"],["b",2]]})");
  EXPECT_EQ(written(Value::dict({{"t", 1}})), R"({"map":[["t",1]]})");
  EXPECT_EQ(written(Value::dict({{"string", std::nan("")}})), R"({"map":[["string","NaN"]]})");
  EXPECT_EQ(written(Value::dict({{"string", "a"}})), R"({"string":"a"})");
}

TEST(Json, WritesNarrowFloatsAsTheNumberTheyEqual) {
  EXPECT_EQ(written(at::full({1}, 0.1, at::kBFloat16)), R"({"t":"bfloat16","shape":[1],"data":[0.10009765625]})");
  EXPECT_EQ(written(at::full({1}, 0.3, at::kFloat8_e4m3fn)), R"({"t":"float8_e4m3fn","shape":[1],"data":[0.3125]})");
}

TEST(Json, WritesALargeTensorAsBytes) {
  for (const auto dtype : kDtypes) {
    const auto at_limit = Value(seeded_tensor({4096}, dtype, 1));
    const auto above = Value(seeded_tensor({17, 241}, dtype, 2));
    EXPECT_TRUE(to_json(at_limit).contains("data")) << dtype;
    EXPECT_TRUE(to_json(above).contains("b64")) << dtype;
    EXPECT_EQ(read_from(written(at_limit)), at_limit) << dtype;
    EXPECT_EQ(read_from(written(above)), above) << dtype;
  }
}

TEST(Json, ReadsWhatOthersMayWrite) {
  EXPECT_EQ(read_from(R"({"t":"float32","shape":[],"data":2})"), Value(at::full({}, 2.0F)));
  EXPECT_EQ(read_from(R"({"t":"float32","shape":[2],"data":[1,0.1]})"), Value(at::tensor({1.0F, 0.1F})));
  EXPECT_EQ(read_from(R"({"t":"int16","shape":[1],"b64":"AQI="})"), Value(at::full({1}, 513, at::kShort)));
  EXPECT_EQ(read_from(R"({"string":"a"})"), Value::dict({{"string", "a"}}));
  EXPECT_EQ(from_json(nlohmann::json::parse(R"({"x":1})")), Value::dict({{"x", 1}}));
}

TEST(Json, SaysWhereAndWhyItCannotRead) {
  EXPECT_EQ(thrown_message<InvalidArgument>([] { read_from(R"({"x":[{"tuple":3}]})"); }),
            "from_json, x[0]: expected a list of items, got 3. "
            "A dict with such a key is written {\"map\": [[key, value], ..]}.");
  EXPECT_EQ(thrown_message<InvalidArgument>([] { read_from(R"([{"t":"int8","shape":[1],"data":[200]}])"); }),
            "[0]: from_json: expected an integer that fits int8, got 200");
  EXPECT_EQ(thrown_message<NotSupported>([] { read_from(R"({"set":[]})"); }),
            "from_json, the value: expected a kind of Value, got a set");
  const auto malformed = {
      R"({"t":"float32","shape":[2],"data":[1]})",
      R"({"t":"float32","shape":[-1],"data":[]})",
      R"({"t":"float32","shape":[4294967296,4294967296],"data":[]})",
      R"({"t":"float32","shape":[1],"b64":"AAAA"})",
      R"({"t":"float32","shape":[1]})",
      R"({"t":"bool","shape":[1],"data":[1]})",
      R"({"t":"x","shape":[],"data":1})",
      R"({"error":"TypeError"})",
      R"({"b64":"A"})",
      R"({"tuple":[],"x":1})",
      R"({"named":"P"})",
      R"({"map":[[1]]})",
      R"({"map":[[1.5,1]]})",
      "18446744073709551615",
  };
  for (const auto* text : malformed) {
    EXPECT_THROW(read_from(text), InvalidArgument) << text;
  }
}

TEST(Json, SaysWhatItCannotWrite) {
  const auto opaque = Value::opaque(std::make_shared<const int>(1), "Tokenizer");
  EXPECT_EQ(thrown_message<TypeError>([&] {
              written(Value::dict({{"x", opaque}}));
            }),
            "to_json, x: expected a value that can be written, got Tokenizer, an opaque object");
  EXPECT_THROW(written("\xFF"), InvalidArgument);
  EXPECT_THROW(written(at::ones({1}, at::kComplexFloat)), NotSupported);
}

RC_GTEST_PROP(Json, ReadsBackWhatItWrote, ()) {
  for (const auto& value : *rc::gen::container<std::vector<Value>>(10, arbitrary_value(kDtypes))) {
    RC_ASSERT(read_from(written(value)) == value);
  }
}

}  // namespace
}  // namespace lockstep::value
