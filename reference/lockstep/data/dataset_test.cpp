#include "lockstep/data/dataset.h"

#include <gtest/gtest.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/tensor.h>

#include "lockstep/data/collate.h"
#include "lockstep/data/data_testing.h"

namespace lockstep::data {
namespace {

using test::Indices;
using test::message_of;

// ---- datasets

struct Labelled : torch::data::datasets::Dataset<Labelled> {
  torch::data::Example<> get(std::size_t i) override { return {at::full({2}, static_cast<double>(i)), at::tensor(10)}; }
  std::optional<std::size_t> size() const override { return 3; }
};

struct Endless {
  at::Tensor get(std::size_t) { return at::zeros({1}); }
  std::optional<std::size_t> size() { return std::nullopt; }
};

struct Records {
  int epoch = -1;
  std::int64_t size() const { return 2; }
  Value get(std::int64_t i) const { return Value::dict({{"id", i}, {"name", "n"}}); }
  void set_epoch(std::int64_t e) { epoch = static_cast<int>(e); }
};

struct Squares final : Dataset {
  Value get(std::int64_t i) override { return i * i; }
  [[nodiscard]] std::int64_t size() const override { return 4; }
};

TEST(MakeDataset, TakesTensorsValuesAndNumbers) {
  const auto ids = make_dataset(test::Ids{5});
  EXPECT_EQ(ids->size(), 5);
  EXPECT_EQ(ids->get(3).tensor().item<std::int64_t>(), 3);
  EXPECT_EQ(make_dataset(Records{})->get(1), Value::dict({{"id", 1}, {"name", "n"}}));
}

TEST(MakeDataset, TakesDatasetsOfTorchDataAndMakesExamplesTuples) {
  const auto labelled = make_dataset(Labelled{});
  EXPECT_EQ(labelled->size(), 3);
  EXPECT_EQ(labelled->get(2), Value::tuple({at::full({2}, 2.0), at::tensor(10)}));
  const auto unlabelled = make_dataset(torch::data::datasets::TensorDataset(at::arange(6).reshape({3, 2})));
  EXPECT_EQ(unlabelled->size(), 3);
  EXPECT_EQ(test::to_indices(unlabelled->get(1)), (Indices{2, 3}));
}

TEST(MakeDataset, SharesOneThatIsShared) {
  const auto records = std::make_shared<Records>();
  make_dataset(records)->set_epoch(7);
  EXPECT_EQ(records->epoch, 7);
  const auto squares = std::make_shared<Squares>();
  EXPECT_EQ(make_dataset(squares), squares);
  EXPECT_EQ(make_dataset(Squares{})->get(3).integer(), 9);
}

TEST(MakeDataset, RefusesAMapStyleDatasetWithoutASize) {
  EXPECT_EQ(message_of<TypeError>([] { static_cast<void>(make_dataset(Endless{})->size()); }),
            "Dataset: expected a dataset that knows its size, got an empty size(). "
            "Return the number of items from size().");
}

TEST(GetItem, SaysWhichIndexFailedAndKeepsTheKindAndTheCause) {
  struct Broken final : Dataset {
    Value get(std::int64_t i) override { throw std::out_of_range("no row " + std::to_string(i)); }
    [[nodiscard]] std::int64_t size() const override { return 4; }
  } broken;
  try {
    get_item(broken, 17);
    FAIL() << "not thrown";
  } catch (const DatasetError& error) {
    EXPECT_STREQ(error.what(), "dataset.get(17): no row 17");
    EXPECT_EQ(error.kind(), "IndexError");
    EXPECT_EQ(error.index(), 17);
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
}

TEST(GetItem, SaysWhichIndexFailedWhateverIsThrown) {
  struct Rude final : Dataset {
    Value get(std::int64_t) override { throw 3; }
    [[nodiscard]] std::int64_t size() const override { return 1; }
  } rude;
  EXPECT_EQ(message_of<DatasetError>([&] { get_item(rude, 0); }),
            "dataset.get(0): an object that is no std::exception was thrown");
}

// ---- collate

TEST(DefaultCollate, StacksTensorsAndKeepsTheStructure) {
  const auto item = [](int i) {
    return Value::tuple({at::full({2, 3}, i), Value::dict({{"y", at::scalar_tensor(i)}, {"z", Value::list({i})}})});
  };
  const auto batch = default_collate({item(0), item(1), item(2), item(3)});
  ASSERT_TRUE(batch.is_tuple());
  EXPECT_EQ(batch[0].tensor().sizes(), (at::IntArrayRef{4, 2, 3}));
  EXPECT_EQ(batch[0].tensor()[3][1][2].item<int>(), 3);
  EXPECT_EQ(batch[1]["y"].tensor().sizes(), (at::IntArrayRef{4}));
  EXPECT_TRUE(batch[1]["z"].is_list());
  EXPECT_EQ(test::to_indices(batch[1]["z"][0]), (Indices{0, 1, 2, 3}));
}

TEST(DefaultCollate, MakesTensorsOfNumbersInPytorchsDtypes) {
  EXPECT_EQ(default_collate({1, 2}), Value(at::tensor({1, 2}, at::kLong)));
  EXPECT_EQ(default_collate({1.5, 2.0}), Value(at::tensor({1.5, 2.0}, at::kDouble)));
  EXPECT_EQ(default_collate({true, false}), Value(at::tensor({1, 0}).to(at::kBool)));
  EXPECT_EQ(default_collate({"a", "b"}), Value::list({"a", "b"}));
}

TEST(DefaultCollate, KeepsNamedTuples) {
  const auto point = [](double x) { return Value::named_tuple("Point", {{"x", x}}); };
  const auto batch = default_collate({point(1), point(2)});
  EXPECT_EQ(batch.named_tuple_name(), "Point");
  EXPECT_EQ(batch["x"], Value(at::tensor({1.0, 2.0}, at::kDouble)));
}

TEST(DefaultCollate, NamesThePathAndTheShapesThatDoNotStack) {
  const auto item = [](std::int64_t size) { return Value::dict({{"x", Value::list({at::zeros({2, size})})}}); };
  EXPECT_EQ(message_of<RuntimeError>([&] {
              default_collate({item(3), item(3), item(4)});
            }),
            "default_collate: expected tensors of one shape at x[0], [2, 3] in item 0, got [2, 4] in item 2. "
            "Make the dataset's items alike, or give the loader a collate function.");
}

TEST(DefaultCollate, RefusesWhatCannotBeBatched) {
  EXPECT_EQ(message_of<TypeError>([] {
              default_collate({Value::tuple({1}), Value::tuple({2.5})});
            }),
            "default_collate: expected int at [0] as in item 0, got float in item 1. "
            "Make the dataset's items alike, or give the loader a collate function.");
  EXPECT_THROW(default_collate({Value(), Value()}), TypeError);
  EXPECT_THROW(default_collate({Value::dict({{"a", 1}}), Value::dict({{"b", 1}})}), KeyError);
  EXPECT_THROW(default_collate({Value::list({1}), Value::list({1, 2})}), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::data
