// Operations on nested values, among threads that are ranks; the last test repeats the checks over Gloo.
#include "lockstep/comm/operations.h"

#include <ATen/Functions.h>

#include "lockstep/comm/operations_test_support.h"

namespace lockstep::comm {
namespace {

// -- gather

void check_gather(TestRank& me) {
  const double r = me.rank;
  expect_tensor(gather(at::scalar_tensor(r), me.group), {0, 1, 2}, {3});
  expect_tensor(gather(tensor_of({r, 1, r, 2}, at::kLong).reshape({2, 2}), me.group),
                {0, 1, 0, 2, 1, 1, 1, 2, 2, 1, 2, 2}, {6, 2});
  const auto transposed = tensor_of({r, 10 + r, 20 + r, 30 + r}).reshape({2, 2}).t();
  ASSERT_FALSE(transposed.is_contiguous());
  expect_tensor(gather(transposed, me.group), {0, 20, 10, 30, 1, 21, 11, 31, 2, 22, 12, 32}, {6, 2});
  expect_tensor(gather(at::full({1}, me.rank == 1, at::kBool), me.group), {0, 1, 0}, {3});
  expect_tensor(gather(at::empty({0, 2}), me.group), {}, {0, 2});
  const auto with_history = at::ones({1}).requires_grad_() * 2;
  EXPECT_FALSE(gather(with_history, me.group).tensor().requires_grad());
}
TEST(OPS_002, ConcatenatesInRankOrderOnEveryRank) { check_on_threads(check_gather); }

TEST(OPS_002, KeepsTheStructure) {
  check_on_threads([](TestRank& me) {
    const auto r = at::full({1}, me.rank);
    const auto all = gather(Value::dict({{"b", Value::tuple({r, Value::list({r + 10})})},
                                         {"a", Value::named_tuple("Point", {{"x", r + 20}})}}),
                            me.group);
    EXPECT_EQ(all.entries()[0].first, Value::Key("b"));
    expect_tensor(all["b"][0], {0, 1, 2}, {3});
    expect_tensor(all["b"][1][0], {10, 11, 12}, {3});
    expect_tensor(all["a"]["x"], {20, 21, 22}, {3});
    EXPECT_EQ(all["a"].named_tuple_name(), "Point");
  });
}

void check_gather_refusals(TestRank& me) {
  EXPECT_CONTAINS(message_of<TypeError>([&] { gather(Value::dict({{"name", "x"}}), me.group); }), "gather");
  EXPECT_THROW(gather(Value(1), me.group), TypeError);
  const auto before = num_collectives(me);
  EXPECT_EQ(gather(Value::list({}), me.group), Value::list({}));
  EXPECT_EQ(gather(Value::dict({}), me.group), Value::dict({}));
  EXPECT_EQ(num_collectives(me), before);
}
TEST(OPS_003, RefusesLeavesThatAreNoTensorsAndSendsNothingForEmptyContainers) {
  check_on_threads(check_gather_refusals);
}

TEST(OPS_003, WithoutAGroupReturnsTheVeryInput) {
  const auto scalar = at::scalar_tensor(1.0);
  EXPECT_TRUE(is_same(gather(scalar, {}), scalar));
  EXPECT_EQ(gather(scalar, {}).tensor().dim(), 0);
  EXPECT_EQ(gather("text", {}), Value("text"));
}

TEST(OPS_004, InDebugModeUnequalShapesAreAnErrorInsteadOfUndefined) {
  check_on_threads(
      [](TestRank& me) { EXPECT_THROW(gather(at::ones({me.rank + 1}), debug_group(me)), CollectiveMismatch); });
}

// -- gather_object

void check_gather_object(TestRank& me) {
  EXPECT_EQ(gather_object(Value::list({me.rank, "ar"}), me.group), Value::list({0, "ar", 1, "ar", 2, "ar"}));
  std::vector<Value> as_many_as_the_rank(static_cast<std::size_t>(me.rank), Value(me.rank));
  EXPECT_EQ(gather_object(Value::list(as_many_as_the_rank), me.group), Value::list({1, 2, 2}));
  const auto nested = gather_object(
      Value::list({Value::dict({{"t", at::full({me.rank}, me.rank)}, {"none", Value()}, {"x", 0.5}})}), me.group);
  ASSERT_EQ(nested.size(), 3U);
  expect_tensor(nested[2]["t"], {2, 2}, {2});
  EXPECT_TRUE(nested[1]["none"].is_none());
  EXPECT_EQ(nested[0]["x"], Value(0.5));
  EXPECT_THROW(gather_object(Value(me.rank), me.group), TypeError);
}
TEST(OPS_005, ConcatenatesTheRanksListsInRankOrder) { check_on_threads(check_gather_object); }

TEST(OPS_005, WithoutAGroupReturnsTheVeryInput) {
  EXPECT_EQ(gather_object(Value::list({1, "a"}), {}), Value::list({1, "a"}));
  EXPECT_EQ(gather_object(Value(7), {}), Value(7));
}

void check_gather_object_refusals(TestRank& me) {
  EXPECT_THROW(gather_object(Value::dict({{"k0", 0}}), me.group), TypeError);
  EXPECT_CONTAINS(message_of<TypeError>([&] { gather_object(Value("text"), me.group); }), "list");
}
TEST(OPS_006, RefusesMappingsAndStrings) { check_on_threads(check_gather_object_refusals); }

// -- reduce

void check_reduce(TestRank& me) {
  const auto input = tensor_of({1, 2}) * (me.rank + 1);
  const auto before = input.clone();
  expect_tensor(reduce(input, me.group, Reduction::sum), {6, 12}, {2});
  expect_tensor(reduce(input, me.group, Reduction::mean), {2, 4}, {2});
  expect_tensor(reduce(input, me.group), {2, 4}, {2});  // the utility's default
  expect_tensor(reduce(input, me.group, Reduction::max), {3, 6}, {2});
  EXPECT_TRUE(input.equal(before));
  const auto nested =
      reduce(Value::dict({{"loss", input}, {"n", Value::tuple({at::scalar_tensor(1.0)})}}), me.group, Reduction::sum);
  expect_tensor(nested["loss"], {6, 12}, {2});
  expect_tensor(nested["n"][0], {3}, {});
}
TEST(OPS_007, SumsAveragesAndTakesTheMaximumWithoutChangingTheInput) { check_on_threads(check_reduce); }

// Ranks may hold the same shape in different orders of memory: what meets are elements, not bytes.
void check_reduce_of_mixed_layouts(TestRank& me) {
  const auto rows = tensor_of({1, 2, 3, 4, 5, 6}).reshape({2, 3});
  const auto input = me.rank == 1 ? rows.t().contiguous().t() : rows;
  EXPECT_EQ(input.is_contiguous(), me.rank != 1);
  expect_tensor(reduce(input, me.group, Reduction::sum), {3, 6, 9, 12, 15, 18}, {2, 3});
}
TEST(OPS_007, AddsElementsWhateverTheirLayout) { check_on_threads(check_reduce_of_mixed_layouts); }

void check_reduction_none(TestRank& me) {
  const auto input = tensor_of({1, 2}) * (me.rank + 1);
  const auto copy = reduce(input, me.group, Reduction::none);
  EXPECT_EQ(copy, Value(input));
  EXPECT_FALSE(is_same(copy, input));
}
TEST(OPS_008, NoneReturnsACopyOfTheInput) { check_on_threads(check_reduction_none); }

TEST(OPS_008, RefusesAnUnknownWord) {
  EXPECT_EQ(reduction_from("none"), Reduction::none);
  EXPECT_EQ(reduction_from("sum"), Reduction::sum);
  EXPECT_EQ(reduction_from("mean"), Reduction::mean);
  EXPECT_EQ(reduction_from("max"), Reduction::max);
  EXPECT_CONTAINS(message_of<InvalidArgument>([] { static_cast<void>(reduction_from("avg")); }), "'avg'");
}

void check_reduce_of_integers(TestRank& me) {
  const auto input = tensor_of({1.0 + me.rank, 5.0 - me.rank}, at::kLong);
  const auto before = num_collectives(me);
  EXPECT_THROW(reduce(input, me.group, Reduction::mean), RuntimeError);
  EXPECT_THROW(reduce(at::ones({1}, at::kBool), me.group, Reduction::mean), RuntimeError);
  EXPECT_EQ(num_collectives(me), before);
  expect_tensor(reduce(input, me.group, Reduction::sum), {6, 12}, {2});
  expect_tensor(reduce(input, me.group, Reduction::max), {3, 5}, {2});
  EXPECT_THROW(reduce(Value(1.5), me.group, Reduction::sum), TypeError);
}
TEST(OPS_009, TheMeanOfIntegersIsRefusedBeforeAnythingIsSent) { check_on_threads(check_reduce_of_integers); }

TEST(OPS_009, WithoutAGroupAnyReductionIsACopy) {
  const auto input = tensor_of({1, 2}, at::kLong);
  for (const auto reduction : {Reduction::none, Reduction::sum, Reduction::mean, Reduction::max}) {
    const auto copy = reduce(input, {}, reduction);
    EXPECT_EQ(copy, Value(input));
    EXPECT_FALSE(is_same(copy, input));
  }
  EXPECT_THROW(reduce(Value("text"), {}, Reduction::sum), TypeError);
}

// -- broadcast

void check_broadcast(TestRank& me) {
  const auto tensor = at::full({2}, me.rank);
  const auto result = broadcast(Value::list({tensor}), me.group, 2);
  expect_tensor(result[0], {2, 2}, {2});
  EXPECT_TRUE(is_same(result[0], tensor));
  EXPECT_EQ(numbers_in(tensor), (Numbers{2, 2}));
  expect_tensor(broadcast(at::full({1}, 5 + me.rank), me.group), {5}, {1});
  const auto parameter = at::full({1}, static_cast<double>(me.rank)).requires_grad_();
  expect_tensor(broadcast(parameter, me.group, 1), {1}, {1});
  EXPECT_TRUE(parameter.requires_grad());
  EXPECT_THROW(broadcast(Value::tuple({1}), me.group), TypeError);
  EXPECT_THROW(broadcast(tensor, me.group, me.size), InvalidArgument);
}
TEST(OPS_010, OverwritesInPlaceAndReturnsTheSameTensor) { check_on_threads(check_broadcast); }

void check_broadcast_of_mixed_layouts(TestRank& me) {
  const auto rows = tensor_of({1, 2, 3, 4, 5, 6}).reshape({2, 3}) * (me.rank + 1);
  const auto tensor = me.rank == 1 ? rows : rows.t().contiguous().t();
  expect_tensor(broadcast(tensor, me.group, 2), {3, 6, 9, 12, 15, 18}, {2, 3});
  EXPECT_EQ(numbers_in(tensor), (Numbers{3, 6, 9, 12, 15, 18}));
}
TEST(OPS_010, CopiesElementsWhateverTheirLayout) { check_on_threads(check_broadcast_of_mixed_layouts); }

TEST(OPS_010, WithoutAGroupReturnsTheVeryInput) {
  const auto tensor = at::ones({1});
  EXPECT_TRUE(is_same(broadcast(tensor, {}), tensor));
  EXPECT_EQ(broadcast("text", {}), Value("text"));
}

void check_broadcast_object_list(TestRank& me) {
  std::vector<Value> list = {me.rank, "rank " + std::to_string(me.rank), Value::list({me.rank})};
  auto& same = broadcast_object_list(list, me.group, 1);
  EXPECT_EQ(&same, &list);
  EXPECT_EQ(list, (std::vector<Value>{1, "rank 1", Value::list({1})}));
}
TEST(OPS_011, ReplacesTheElementsInPlace) { check_on_threads(check_broadcast_object_list); }

TEST(OPS_011, AListOfAnotherLengthIsNamedOnItsRank) {
  check_on_threads([](TestRank& me) {
    std::vector<Value> list(me.rank == 2 ? 1 : 2, Value(me.rank));
    if (me.rank != 2) {
      broadcast_object_list(list, me.group);
      EXPECT_EQ(list, (std::vector<Value>{0, 0}));
      return;
    }
    const auto text = message_of<InvalidArgument>([&] { broadcast_object_list(list, me.group); });
    EXPECT_CONTAINS(text, "a list of 2, as on process 0");
    EXPECT_CONTAINS(text, "a list of 1");
  });
}

// -- pad_across_processes

void check_pad(TestRank& me) {
  const auto row = at::arange(1, me.rank + 2);
  const auto pad = [&me](const at::Tensor& tensor, const PadOptions& options) {
    return numbers_in(pad_across_processes(tensor, me.group, options).tensor());
  };
  EXPECT_EQ(pad(row, {}), (Rows{{1, 0, 0}, {1, 2, 0}, {1, 2, 3}}[static_cast<std::size_t>(me.rank)]));
  EXPECT_EQ(pad(row, {.pad_index = -1, .pad_first = true}),
            (Rows{{-1, -1, 1}, {-1, 1, 2}, {1, 2, 3}}[static_cast<std::size_t>(me.rank)]));
  const auto columns = at::ones({2, me.rank + 1}, at::kLong);
  EXPECT_EQ(pad(columns, {.dim = 1}),
            (Rows{{1, 0, 0, 1, 0, 0}, {1, 1, 0, 1, 1, 0}, {1, 1, 1, 1, 1, 1}}[static_cast<std::size_t>(me.rank)]));
  EXPECT_EQ(pad(columns, {.dim = -1, .pad_index = 9}),
            (Rows{{1, 9, 9, 1, 9, 9}, {1, 1, 9, 1, 1, 9}, {1, 1, 1, 1, 1, 1}}[static_cast<std::size_t>(me.rank)]));
  const auto nested = pad_across_processes(Value::dict({{"x", Value::tuple({row})}}), me.group);
  EXPECT_EQ(nested["x"][0].tensor().size(0), 3);
}
TEST(OPS_012, GrowsTheDimensionToTheLargestOverTheRanks) { check_on_threads(check_pad); }

void check_pad_leaves_alone(TestRank& me) {
  const auto longest = at::ones({3});
  EXPECT_TRUE(is_same(pad_across_processes(longest, me.group), longest));
  const auto before = num_collectives(me);
  const auto scalar = at::scalar_tensor(1.0);
  EXPECT_TRUE(is_same(pad_across_processes(scalar, me.group), scalar));
  EXPECT_TRUE(is_same(pad_across_processes(longest, me.group, {.dim = 1}), longest));
  EXPECT_TRUE(is_same(pad_across_processes(longest, me.group, {.dim = -2}), longest));
  EXPECT_EQ(num_collectives(me), before);
  EXPECT_THROW(pad_across_processes(Value::list({"x"}), me.group), TypeError);
}
TEST(OPS_013, ReturnsWhatNeedsNoPaddingAsItIs) { check_on_threads(check_pad_leaves_alone); }

TEST(OPS_013, ReturnsANestedTensorWithAWarning) {
  testing::internal::CaptureStderr();
  check_on_threads([](TestRank& me) {
    const auto nested = at::_nested_tensor_from_tensor_list({at::ones({1}), at::ones({me.rank + 1})});
    EXPECT_TRUE(is_same(pad_across_processes(nested, me.group), nested));
  });
  EXPECT_CONTAINS(testing::internal::GetCapturedStderr(), "nested tensor");
}

TEST(OPS_013, WithoutAGroupRefusesNonTensorsTheSame) {
  const auto tensor = at::ones({2});
  EXPECT_TRUE(is_same(pad_across_processes(tensor, {}), tensor));
  EXPECT_THROW(pad_across_processes(Value("text"), {}), TypeError);
}

void check_pad_keeps_the_dtype(TestRank& me) {
  for (const auto dtype : {at::kBool, at::kHalf, at::kByte, at::kInt, at::kDouble}) {
    const auto padded = pad_across_processes(at::ones({me.rank + 1}, dtype), me.group, {.pad_index = 1}).tensor();
    EXPECT_EQ(padded.scalar_type(), dtype);
    EXPECT_EQ(numbers_in(padded), (Numbers{1, 1, 1}));
  }
}
TEST(OPS_014, EveryRankKeepsTheInputsDtype) { check_on_threads(check_pad_keeps_the_dtype); }

// -- copy_tensor_to_devices

void check_copy(TestRank& me) {
  using Maybe = std::optional<at::Tensor>;
  const auto copy_of = [&me](const at::Tensor& tensor, int from) {
    return copy_tensor_to_devices(me.rank == from ? Maybe(tensor) : std::nullopt, me.group);
  };
  expect_tensor(copy_of(at::arange(3), 1), {0, 1, 2}, {3});
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte, at::kChar, at::kShort,
                           at::kInt, at::kLong, at::kBool}) {
    const auto copy = copy_of(tensor_of({0, 1, 1, 0, 1, 0}, dtype).reshape({3, 2}).t(), 2);
    EXPECT_EQ(copy.scalar_type(), dtype);
    expect_tensor(copy, {0, 1, 1, 1, 0, 0}, {2, 3});
  }
  expect_tensor(copy_of(at::scalar_tensor(4.5), 0), {4.5}, {});
  expect_tensor(copy_of(at::empty({0, 3}), 0), {}, {0, 3});  // where the recorded behaviour hangs
}
TEST(OPS_021, AnyShapeAndDtypeArrivesFromTheOneRankThatHasIt) { check_on_threads(check_copy); }

TEST(OPS_021, ExactlyOneRankPassesATensor) {
  check_on_threads([](TestRank& me) {
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { copy_tensor_to_devices({}, me.group); }), "none at all");
    const auto both = me.rank == 1 ? std::nullopt : std::optional(at::ones({1}));
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { copy_tensor_to_devices(both, me.group); }), "ranks 0, 2");
  });
  const auto tensor = at::ones({1});
  EXPECT_TRUE(copy_tensor_to_devices(tensor, {}).is_same(tensor));
  EXPECT_THROW(copy_tensor_to_devices({}, {}), InvalidArgument);
}

TEST(Operations, AreTheSameBetweenProcessesOverGloo) {
  check_over_gloo({check_gather, check_gather_refusals, check_gather_object, check_gather_object_refusals, check_reduce,
                   check_reduce_of_mixed_layouts, check_reduction_none, check_reduce_of_integers, check_broadcast,
                   check_broadcast_of_mixed_layouts, check_broadcast_object_list, check_pad, check_pad_leaves_alone,
                   check_pad_keeps_the_dtype, check_copy});
}

}  // namespace
}  // namespace lockstep::comm
