#include "lockstep/value/tensor_ops.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/value/arbitrary_value.h"
#include "lockstep/value/thrown_message.h"
#include "lockstep/value/traverse.h"

namespace lockstep::value {
namespace {

at::Tensor numbers(std::vector<std::int64_t> elements) { return at::tensor(elements, at::kLong); }

// OPS-016: leafwise over the structure of the first entry.
TEST(OPS_016, ConcatenatesLeafwise) {
  const auto first = Value::dict({{"x", numbers({1})}, {"y", Value::tuple({numbers({2})})}});
  const auto second = Value::dict({{"y", Value::tuple({numbers({4})})}, {"x", numbers({3})}, {"extra", "ignored"}});
  EXPECT_EQ(concatenate({first, second}),
            Value::dict({{"x", numbers({1, 3})}, {"y", Value::tuple({numbers({2, 4})})}}));
  EXPECT_EQ(concatenate({at::ones({2, 1}), at::ones({2, 2})}, 1), Value(at::ones({2, 3})));
}

// OPS-016: extra items of later entries are ignored, missing ones are an error.
TEST(OPS_016, TheFirstEntryGivesTheStructure) {
  const auto one = Value::list({numbers({1})});
  const auto two = Value::list({numbers({2}), numbers({3})});
  EXPECT_EQ(concatenate({one, two}), Value::list({numbers({1, 2})}));
  EXPECT_THROW(concatenate({two, one}), OutOfRange);
  EXPECT_EQ(thrown_message<KeyError>([] {
              concatenate({Value::dict({{"x", at::ones({1})}}), Value::dict({})});
            }),
            "x of value 1: expected an entry as in the first, got {}");
}

// OPS-016: one entry with a non-tensor leaf keeps it, several are a TypeError.
TEST(OPS_016, NonTensorLeavesPassAloneOnly) {
  EXPECT_EQ(concatenate({Value::list({"a", numbers({1})})}), Value::list({"a", numbers({1})}));
  EXPECT_EQ(thrown_message<TypeError>([] {
              concatenate({Value::list({"a"}), Value::list({"b"})});
            }),
            "concatenate: expected a tensor at [0], got string");
}

// OPS-016: shape mismatch is a RuntimeError, an empty list an index error.
TEST(OPS_016, RejectsShapesThatDoNotFitAndNothing) {
  const auto message = thrown_message<RuntimeError>([] { concatenate({at::ones({1, 2}), at::ones({1, 3})}); });
  EXPECT_EQ(message.find("concatenate: the tensors at the value do not fit: Sizes of tensors must match"), 0U);
  EXPECT_EQ(message.find("Exception raised"), std::string::npos);
  EXPECT_THROW(concatenate({}), OutOfRange);
  EXPECT_THROW(concatenate({at::ones({1})}, 1), OutOfRange);
}

// OPS-016, OPS-018: slicing undone.
RC_GTEST_PROP(OPS_016, JoinsWhatSliceParted, ()) {
  const auto num_rows = *rc::gen::inRange<std::int64_t>(0, 9);
  const auto cut = *rc::gen::inRange<std::int64_t>(0, num_rows + 1);
  const auto dtype = *rc::gen::element(at::kFloat, at::kBFloat16, at::kLong, at::kBool);
  const auto give_rows = [&](const Value& leaf) -> Value {
    return leaf.is_tensor() ? leaf : Value(seeded_tensor({num_rows, 2}, dtype, 5));
  };
  const auto shape = *arbitrary_value({at::kFloat});
  const auto value = map_leaves(map_leaves(shape, [](const Value&) { return Value(); }), give_rows);
  RC_ASSERT(concatenate({slice(value, 0, cut), slice(value, cut, num_rows)}) == value);
}

// OPS-017: rows of the first leaf, depth first.
TEST(OPS_017, ReadsTheBatchSizeOffTheFirstLeaf) {
  const auto value = Value::dict({{"a", Value::list({Value::tuple({at::ones({3, 2})})})}, {"b", at::ones({7})}});
  EXPECT_EQ(find_batch_size(value), 3);
  EXPECT_EQ(find_batch_size_or_none(value), 3);
}

// OPS-017: empty container ValueError, first leaf not a tensor TypeError, 0-dim index error.
TEST(OPS_017, SaysWhyThereIsNoBatchSize) {
  EXPECT_EQ(thrown_message<InvalidArgument>([] {
              find_batch_size(Value::dict({{"a", Value::list({})}}));
            }),
            "find_batch_size: expected a tensor to read it off, got an empty list");
  EXPECT_EQ(thrown_message<TypeError>([] {
              find_batch_size(Value::list({"a", at::ones({2})}));
            }),
            "find_batch_size: expected a tensor as the first leaf, got string");
  EXPECT_EQ(thrown_message<OutOfRange>([] { find_batch_size(at::ones({})); }),
            "find_batch_size: expected a tensor with rows, got a 0-dim tensor");
}

// OPS-017: the lenient variant returns none for the first two only.
TEST(OPS_017, TheLenientVariantReturnsNone) {
  EXPECT_EQ(find_batch_size_or_none(Value::tuple({})), std::nullopt);
  EXPECT_EQ(find_batch_size_or_none("a"), std::nullopt);
  EXPECT_THROW(find_batch_size_or_none(at::ones({})), OutOfRange);
}

// OPS-018: tensors become nested lists of numbers, 0-dim a number; bfloat16 too; other leaves stay.
TEST(OPS_018, ListifyGivesNumbers) {
  EXPECT_EQ(listify(numbers({1, 2}).reshape({2, 1})), Value::list({Value::list({1}), Value::list({2})}));
  EXPECT_EQ(listify(at::full({}, 1.5F, at::kBFloat16)), Value(1.5));
  EXPECT_EQ(listify(at::full({1}, 1.5F).requires_grad_()), Value::list({1.5}));
  EXPECT_EQ(listify(Value::list({at::ones({1}, at::kBool), "a"})), Value::list({Value::list({true}), "a"}));
  EXPECT_EQ(listify(at::ones({0, 2})), Value::list({}));
  EXPECT_EQ(listify(at::ones({2, 0})), Value::list({Value::list({}), Value::list({})}));
  EXPECT_EQ(listify(numbers({1, 2, 3, 4}).reshape({2, 2}).t()),
            Value::list({Value::list({1, 3}), Value::list({2, 4})}));
  EXPECT_THROW(listify(at::ones({1}, at::kComplexFloat)), NotSupported);
}

// OPS-018: slice_tensors slices dim 0 of every tensor.
TEST(OPS_018, SliceTakesRows) {
  EXPECT_EQ(slice(Value::list({numbers({1, 2, 3}), "a"}), 1, 9), Value::list({numbers({2, 3}), "a"}));
  EXPECT_EQ(value::slice(numbers({1, 2, 3}), 2, 1), Value(numbers({})));
  EXPECT_EQ(thrown_message<OutOfRange>([] { value::slice(at::ones({}), 0, 1); }),
            "slice: expected a tensor with rows, got a 0-dim tensor");
}

// OPS-019: entries under skip_keys stay, also in nested mappings.
TEST(OPS_019, SendsAllButSkippedKeys) {
  const auto inner = Value::dict({{"x", at::ones({1})}, {7, at::ones({1})}});
  const auto value = Value::dict({{"x", at::ones({1})}, {"s", Value::list({inner})}, {"n", 1}});
  const auto sent = send_to_device(value, at::kMeta, {.non_blocking = true, .skip_keys = {"x"}});
  EXPECT_TRUE(sent["x"].tensor().is_cpu());
  EXPECT_TRUE(sent["s"][0]["x"].tensor().is_cpu());
  EXPECT_TRUE(sent["s"][0][7].tensor().is_meta());
  EXPECT_EQ(sent["n"], Value(1));
  EXPECT_TRUE(send_to_device(value, at::kMeta)["x"].tensor().is_meta());
}

// OPS-020: description and uninitialised tensors of that description.
TEST(OPS_020, DescribesTensorsAndMakesThem) {
  const auto value = Value::dict({{"x", at::ones({2, 3}, at::kHalf)}, {"n", 1}});
  const auto structure = get_data_structure(value);
  EXPECT_EQ(to_text(structure), "{\"x\": TensorInformation(shape=[2, 3], dtype=\"float16\"), \"n\": 1}");
  const auto made = initialize_tensors(structure);
  EXPECT_EQ(get_data_structure(made), structure);
  EXPECT_TRUE(initialize_tensors(structure, at::kMeta)["x"].tensor().is_meta());
}

// OPS-020: device of the first tensor found, none without tensors.
TEST(OPS_020, FindsTheDeviceOfTheFirstTensor) {
  EXPECT_EQ(find_device(Value::list({"a", Value::list({}), at::empty({1}, at::kMeta), at::ones({1})})), at::kMeta);
  EXPECT_EQ(find_device(Value::list({"a"})), std::nullopt);
}

// OPS-022: only float16 and bfloat16 become float32.
TEST(OPS_022, ConvertsHalfPrecisionOnly) {
  const auto half = Value::list({at::ones({1}, at::kHalf), at::ones({1}, at::kBFloat16)});
  const auto others = Value::list({at::ones({1}, at::kDouble), at::ones({1}, at::kInt), "a"});
  EXPECT_EQ(convert_to_fp32(half), Value::list({at::ones({1}), at::ones({1})}));
  EXPECT_EQ(convert_to_fp32(others), others);
}

// OPS-015, Accepted: the last row is repeated up to the next multiple of P.
TEST(OPS_015, RepeatsTheLastRowUpToAMultiple) {
  const auto padded_rows = [](std::int64_t batch_size, std::int64_t num_processes) {
    return pad_input_tensors(at::ones({batch_size, 2}), batch_size, num_processes).tensor().size(0);
  };
  EXPECT_EQ(pad_input_tensors(numbers({1, 2, 3}), 3, 4), Value(numbers({1, 2, 3, 3})));
  EXPECT_EQ(padded_rows(1, 4), 4);
  EXPECT_EQ(padded_rows(5, 2), 6);
  EXPECT_EQ(padded_rows(4, 4), 4);
  EXPECT_EQ(padded_rows(9, 4), 12);
  EXPECT_EQ(pad_input_tensors(numbers({1, 2, 3}).unsqueeze(0), 3, 2, -1), Value(numbers({1, 2, 3, 3}).unsqueeze(0)));
}

TEST(OPS_015, RejectsWhatItCannotPad) {
  EXPECT_EQ(thrown_message<TypeError>([] {
              pad_input_tensors(Value::dict({{"x", "a"}}), 1, 2);
            }),
            "pad_input_tensors: expected a tensor at x, got string");
  EXPECT_THROW(pad_input_tensors(at::ones({0}), 1, 2), OutOfRange);
  EXPECT_THROW(pad_input_tensors(at::ones({}), 1, 2), OutOfRange);
  EXPECT_EQ(thrown_message<InvalidArgument>([] { pad_input_tensors(at::ones({1}), 1, 0); }),
            "pad_input_tensors: expected batch_size >= 0 and num_processes >= 1, got batch_size 1 and num_processes 0");
}

}  // namespace
}  // namespace lockstep::value
