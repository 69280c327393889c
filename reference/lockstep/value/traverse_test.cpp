#include "lockstep/value/traverse.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/value/thrown_message.h"

namespace lockstep::value {
namespace {

Value nested(const at::Tensor& tensor) {
  return Value::dict({{"z", Value::list({tensor, "text"})},
                      {"a", Value::named_tuple("P", {{"u", tensor}, {"v", Value::tuple({1, tensor})}})},
                      {4, Value()}});
}

// OPS-001: results keep container kinds, field names and key order; other leaves stay.
TEST(OPS_001, MapKeepsTheStructureAndOtherLeaves) {
  const auto doubled = map_tensors(nested(at::ones({2})), [](const at::Tensor& tensor) { return tensor * 2; });
  EXPECT_EQ(doubled, nested(at::full({2}, 2.0F)));
}

TEST(OPS_001, MapReturnsAnEmptyContainerOfTheSameKind) {
  const auto fail = [](const Value& leaf) -> Value { throw std::logic_error("an empty container has no leaf"); };
  for (const auto& empty : {Value::list({}), Value::tuple({}), Value::dict({}), Value::named_tuple("P", {})}) {
    EXPECT_EQ(map_leaves(empty, fail), empty);
  }
}

// OPS-001: TypeError naming type and operation, if asked.
TEST(OPS_001, MapNamesTheTypeTheOperationAndThePlace) {
  const auto same = [](const at::Tensor& tensor) { return tensor; };
  EXPECT_EQ(thrown_message<TypeError>([&] { map_tensors_or_throw(nested(at::ones({2})), same, "gather"); }),
            "gather: expected a tensor at z[1], got string");
  EXPECT_EQ(thrown_message<TypeError>([&] { map_tensors_or_throw(3, same, "reduce"); }),
            "reduce: expected a tensor at the value, got int");
  const auto tensors = Value::list({at::ones({2})});
  EXPECT_EQ(map_tensors_or_throw(tensors, same, "gather"), tensors);
}

TEST(Traverse, GivesEachLeafItsPath) {
  std::string paths;
  for_each_leaf(nested(at::ones({1})), [&](const std::string& path, const Value&) { paths += path + " "; });
  EXPECT_EQ(paths, "z[0] z[1] a.u a.v[0] a.v[1] [4] ");
  EXPECT_EQ(child_path("x", Value::dict({{"layer.0", 1}}), 0), "x[\"layer.0\"]");
}

TEST(Traverse, CountsAndCollectsTensors) {
  const auto tensor = at::ones({2});
  EXPECT_EQ(num_tensors(nested(tensor)), 3);
  EXPECT_EQ(tensors_of(nested(tensor)).size(), 3U);
  EXPECT_TRUE(has_non_tensor_leaf(nested(tensor)));
  EXPECT_FALSE(has_non_tensor_leaf(Value::list({tensor, Value::dict({})})));
}

TEST(Zip, JoinsWhatStandsAtOnePlace) {
  const auto sum = [](const std::vector<at::Tensor>& tensors) { return tensors[0] + tensors[1]; };
  EXPECT_EQ(map_tensors_zip({nested(at::ones({2})), nested(at::ones({2}))}, sum), nested(at::full({2}, 2.0F)));
  const auto in_other_order = Value::dict({{"b", at::ones({})}, {"a", at::zeros({})}});
  EXPECT_EQ(map_tensors_zip({Value::dict({{"a", at::ones({})}, {"b", at::ones({})}}), in_other_order}, sum),
            Value::dict({{"a", at::ones({})}, {"b", at::full({}, 2.0F)}}));
}

TEST(Zip, NamesThePlaceWhereStructuresDiffer) {
  const auto zip = [](const Value& left, const Value& right) {
    zip_leaves({left, right}, [](const std::vector<Value>& leaves, const std::string&) { return leaves[0]; });
  };
  EXPECT_EQ(thrown_message<InvalidArgument>([&] {
              zip(Value::dict({{"x", Value::list({1})}}), Value::dict({{"x", Value::list({1, 2})}}));
            }),
            "x of value 1: expected list of size 1 as in the first, got list of size 2");
  EXPECT_EQ(thrown_message<TypeError>([&] { zip(Value::list({Value::list({1})}), Value::list({Value::tuple({1})})); }),
            "[0] of value 1: expected list as in the first, got tuple");
  EXPECT_EQ(thrown_message<KeyError>([&] {
              zip(Value::dict({{"x", 1}}), Value::dict({{"y", 1}}));
            }),
            "x of value 1: expected an entry as in the first, got {\"y\": 1}");
  EXPECT_THROW(zip(Value::named_tuple("P", {{"x", 1}}), Value::named_tuple("P", {{"y", 1}})), InvalidArgument);
  EXPECT_THROW(zip(1, Value::list({1})), TypeError);
  EXPECT_THROW(zip_leaves({}, {}), OutOfRange);
}

TEST(Zip, RejectsATensorThatMeetsAnotherLeaf) {
  const auto first = [](const std::vector<at::Tensor>& tensors) { return tensors[0]; };
  const auto tensor = Value::list({at::ones({1})});
  EXPECT_EQ(thrown_message<TypeError>([&] {
              map_tensors_zip({tensor, Value::list({"a"})}, first);
            }),
            "[0] of value 1: expected a tensor as in the others, got string");
  EXPECT_EQ(map_tensors_zip({"a", "b"}, first), Value("a"));
}

}  // namespace
}  // namespace lockstep::value
