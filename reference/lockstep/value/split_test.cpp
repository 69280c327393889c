#include "lockstep/value/split.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/value/tensor_ops.h"
#include "lockstep/value/thrown_message.h"

namespace lockstep::value {
namespace {

constexpr bool kPadded = true;

Value list_to(int length) {
  std::vector<int> numbers(static_cast<std::size_t>(length));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Value::list_of(numbers);
}

/// The parts of all ranks as one text, as the clauses write them.
std::string parts(const Value& value, int world_size, bool apply_padding = false) {
  std::string text;
  for (int rank = 0; rank < world_size; ++rank) {
    text += to_text(split_between(value, {.rank = rank, .size = world_size}, apply_padding)) + " ";
  }
  return text;
}

// STATE-135: the first L mod w ranks get one element more.
TEST(STATE_135, SplitsInOrder) {
  EXPECT_EQ(parts(list_to(4), 3), "[0, 1] [2] [3] ");
  EXPECT_EQ(parts(list_to(1), 3), "[0] [] [] ");
  EXPECT_EQ(parts(Value::tuple({0, 1, 2}), 2), "(0, 1) (2,) ");
  EXPECT_EQ(parts(at::arange(3), 2), "tensor<int64>[2]{0, 1} tensor<int64>[1]{2} ");
  EXPECT_EQ(parts(Value::named_tuple("P", {{"x", 0}, {"y", 1}}), 2), "(0,) (1,) ");
  EXPECT_EQ(parts(list_to(0), 2), "[] [] ");
}

// STATE-135: rank r gets [r·q+min(r,e), +q+(1 if r<e)).
RC_GTEST_PROP(STATE_135, FollowsTheFormulaAndPartsMakeTheWhole, ()) {
  const auto length = *rc::gen::inRange(0, 20);
  const auto world_size = *rc::gen::inRange(2, 7);
  const int q = length / world_size;
  const int e = length % world_size;
  std::vector<Value> all;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto part = split_between(list_to(length), {.rank = rank, .size = world_size});
    RC_ASSERT(part.size() == static_cast<std::size_t>(q + (rank < e ? 1 : 0)));
    if (part.size() > 0) RC_ASSERT(part[0].integer() == rank * q + std::min(rank, e));
    for (const auto& item : part.items()) all.push_back(item);
  }
  RC_ASSERT(Value::list(all) == list_to(length));
}

// STATE-136: filled with the last element of the whole input; L=0 is an index error.
TEST(STATE_136, PadsListsWithTheLastElementOfTheWhole) {
  EXPECT_EQ(parts(list_to(7), 3, kPadded), "[0, 1, 2] [3, 4, 6] [5, 6, 6] ");
  EXPECT_EQ(parts(list_to(1), 3, kPadded), "[0] [0] [0] ");
  EXPECT_EQ(parts(list_to(4), 2, kPadded), "[0, 1] [2, 3] ");
  EXPECT_EQ(thrown_message<OutOfRange>([] { parts(list_to(0), 2, kPadded); }),
            "split_between_processes: expected a last element to pad with, got an empty input");
}

// STATE-137: tensors get the same rows as lists.
RC_GTEST_PROP(STATE_137, PadsTensorsAsLists, ()) {
  const auto length = *rc::gen::inRange(1, 20);
  const World world{.rank = *rc::gen::inRange(0, 2), .size = *rc::gen::inRange(2, 7)};
  const auto rows = split_between(at::arange(length).unsqueeze(1), world, kPadded);
  RC_ASSERT(listify(rows.tensor().squeeze(1)) == split_between(list_to(length), world, kPadded));
}

// STATE-138, Accepted: padded as a list, a tuple is returned.
TEST(STATE_138, PadsTuplesAsTuples) { EXPECT_EQ(parts(Value::tuple({0, 1, 2}), 2, kPadded), "(0, 1) (2, 2) "); }

// STATE-139: every value of a mapping is split with the bounds of the first; the result is a new mapping.
TEST(STATE_139, SplitsEveryValueOfADict) {
  const auto dict = Value::dict({{"x", list_to(3)}, {"t", at::arange(3)}, {"name", "abc"}});
  EXPECT_EQ(split_between(dict, {.rank = 1, .size = 2}),
            Value::dict({{"x", Value::list({2})}, {"t", at::tensor({2}, at::kLong)}, {"name", "abc"}}));
  EXPECT_EQ(split_between(dict, {.rank = 1, .size = 2}, kPadded)["x"], Value::list({2, 2}));
  EXPECT_EQ(dict["x"], list_to(3));
}

// STATE-139: unequal lengths are a ValueError, an empty mapping is an index error.
TEST(STATE_139, RejectsUnequalLengthsAndAnEmptyDict) {
  EXPECT_EQ(thrown_message<InvalidArgument>([] {
              parts(Value::dict({{"x", list_to(3)}, {"y", list_to(2)}}), 2);
            }),
            "split_between_processes: expected values of one length, 3 as the first, got length 2 under \"y\"");
  EXPECT_EQ(thrown_message<OutOfRange>([] { parts(Value::dict({}), 2); }),
            "split_between_processes: expected at least one entry, got an empty dict");
}

// STATE-139: a nested mapping is split by the number of keys of the outer value.
TEST(STATE_139, SplitsANestedDictByItsNumberOfKeys) {
  const auto dict = Value::dict({{"outer", Value::dict({{"x", list_to(6)}, {"y", list_to(6)}})}});
  EXPECT_EQ(parts(dict, 2), "{\"outer\": {\"x\": [0], \"y\": [0]}} {\"outer\": {\"x\": [1], \"y\": [1]}} ");
}

// STATE-140: on a world of one the very input is handed out, padding ignored.
TEST(STATE_140, AWorldOfOneGetsTheInput) {
  for (const auto& value : {Value(3), Value(), Value::dict({}), list_to(0)}) {
    EXPECT_EQ(split_between(value, {.rank = 0, .size = 1}, kPadded), value);
  }
}

// STATE-140: strings pass whole; a value without length is a TypeError.
TEST(STATE_140, PassesStringsWholeAndRejectsWhatHasNoLength) {
  EXPECT_EQ(parts("ab", 2), "\"ab\" \"ab\" ");
  EXPECT_EQ(thrown_message<TypeError>([] { parts(3, 2); }),
            "split_between_processes: expected something with a length, got int");
  EXPECT_THROW(parts(at::ones({}), 2), TypeError);
  EXPECT_THROW(parts(Value::dict({{"x", 1}}), 2), TypeError);
  EXPECT_THROW(split_between(list_to(2), {.rank = 2, .size = 2}), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::value
