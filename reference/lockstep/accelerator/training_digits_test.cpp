// The digits, trained on one rank and on several: what the data, the averaging and the metrics promise, together and
// over Gloo. `averages` is the switch: without it the same run shows what would be seen if any of them did not hold.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>

#include "digits.h"
#include "lockstep/accelerator/accelerator.h"
#include "lockstep/random/seeding.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

constexpr std::int64_t kTestSamples = 359;
constexpr std::int64_t kTrainSamples = 1438;
constexpr std::int64_t kBatch = 16;

struct Run {
  int epochs = 5;
  bool averages = true;
};

struct Epoch {
  std::int64_t samples = 0;  // on all ranks
  std::int64_t repeated = 0;
  bool equal_parameters = false;
};

struct Outcome {
  std::vector<Epoch> epochs;
  torch::Tensor predictions;  // of all ranks, by gather_for_metrics
  torch::Tensor labels;
  torch::Tensor predictions_alone;  // of rank 0, over the whole test set with the unwrapped model
  torch::Tensor labels_alone;
  double largest_difference = 0;  // between the outputs of the two

  [[nodiscard]] std::int64_t right() const { return predictions.eq(labels).sum().item<std::int64_t>(); }
  [[nodiscard]] std::int64_t right_alone() const {
    return predictions_alone.eq(labels_alone).sum().item<std::int64_t>();
  }
};

/// What the ranks were given in an epoch, from the event stream.
class Seen {
 public:
  explicit Seen(Accelerator& accelerator)
      : accelerator_(accelerator),
        subscription_(accelerator.account().subscribe([this](const auto&, const accounting::Event& event) {
          const auto* batch = std::get_if<accounting::Batch>(&event);
          if (batch == nullptr) return;
          samples_ += static_cast<std::int64_t>(batch->indices.size());
          repeated_ += batch->padding;
        })) {}

  Epoch take() {
    const auto mine = torch::tensor({samples_, repeated_}, torch::kLong);
    samples_ = repeated_ = 0;
    const auto all = accelerator_.reduce(mine, comm::Reduction::sum).tensor();
    return {.samples = all[0].item<std::int64_t>(), .repeated = all[1].item<std::int64_t>()};
  }

 private:
  Accelerator& accelerator_;
  std::int64_t samples_ = 0;
  std::int64_t repeated_ = 0;
  accounting::Subscription subscription_;
};

bool bits_are_equal(const Accelerator& accelerator, const torch::nn::Module& net) {
  const auto bits = torch::nn::utils::parameters_to_vector(net.parameters()).detach().view(torch::kInt).unsqueeze(0);
  const auto all = accelerator.gather(bits).tensor();
  return all.eq(all[0]).all().item<bool>();
}

template <typename Model, typename Loader>
void evaluate(Accelerator& accelerator, const Model& model, Loader& loader, const digits::Dataset& test,
              Outcome& outcome) {
  const torch::NoGradGuard no_grad;
  model->eval();
  std::vector<torch::Tensor> outputs, labels;
  for (const Value& batch : *loader) {
    const auto all = accelerator.gather_for_metrics(Value::tuple({model(batch[0].tensor()), batch[1]}));
    outputs.push_back(all[0].tensor());
    labels.push_back(all[1].tensor());
  }
  std::vector<torch::Tensor> images, targets;
  for (std::size_t i = 0; i < test.size(); ++i) {
    images.push_back(test.get(i).data);
    targets.push_back(test.get(i).target);
  }
  const auto alone = accelerator.unwrap_model(model)->forward(torch::stack(images));
  const auto together = torch::cat(outputs);
  outcome.predictions = together.argmax(1);
  outcome.labels = torch::cat(labels);
  outcome.predictions_alone = alone.argmax(1);
  outcome.labels_alone = torch::stack(targets);
  if (together.sizes() == alone.sizes())
    outcome.largest_difference = (together - alone).abs().max().template item<double>();
}

Outcome train(const Run& run) {
  Accelerator accelerator({.cpu = true});
  random::set_seed(1);
  const auto data = digits::load(LOCKSTEP_DIGITS);
  data::DataLoader train_data(data.train, {.batch_size = kBatch, .shuffle = true});
  digits::Net net;
  const auto adam = std::make_shared<torch::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(5e-3));
  const auto total = static_cast<double>(run.epochs * train_data.length());
  const auto decay = std::make_shared<optim::LambdaLr>(
      adam, [total](std::int64_t step) { return std::max(0.0, 1.0 - static_cast<double>(step) / total); });
  auto [model, optimizer, scheduler, loader, test_loader] =
      accelerator.prepare(net, adam, decay, train_data, data::DataLoader(data.test, {.batch_size = kBatch}));
  Seen seen(accelerator);
  Outcome outcome;
  for (int epoch = 0; epoch < run.epochs; ++epoch) {
    for (const Value& batch : *loader) {
      std::optional<Accumulation> local;
      if (!run.averages) local.emplace(accelerator.no_sync(model));
      accelerator.backward(torch::cross_entropy_loss(model(batch[0].tensor()), batch[1].tensor()));
      optimizer->step();
      scheduler->step();
      optimizer->zero_grad();
    }
    auto& record = outcome.epochs.emplace_back(seen.take());
    record.equal_parameters = bits_are_equal(accelerator, *net);
  }
  evaluate(accelerator, model, test_loader, data.test, outcome);
  if (accelerator.is_main_process()) {
    std::printf("%d ranks: accuracy %.4f, outputs differ from rank 0's alone by at most %.2g\n",
                accelerator.num_processes(), static_cast<double>(outcome.right()) / kTestSamples,
                outcome.largest_difference);
  }
  return outcome;
}

void expect_good_training(int world_size) {
  test::run_ranks(world_size, [world_size] {
    const auto outcome = train({});
    for (const auto& epoch : outcome.epochs) {
      EXPECT_TRUE(epoch.equal_parameters);
      EXPECT_EQ(epoch.samples - epoch.repeated, kTrainSamples) << "every sample once, but for the padding";
      EXPECT_EQ(epoch.samples % world_size, 0);
      EXPECT_LT(epoch.repeated, kBatch * world_size);
    }
    EXPECT_GE(static_cast<double>(outcome.right()) / kTestSamples, 0.97);
    // Over the same weights: the same samples in the same order, and the same answers.
    EXPECT_TRUE(torch::equal(outcome.labels, outcome.labels_alone));
    EXPECT_TRUE(torch::equal(outcome.predictions, outcome.predictions_alone));
    EXPECT_EQ(outcome.right(), outcome.right_alone());
    EXPECT_LE(outcome.largest_difference, 1e-4);
  });
}

TEST(Digits, TrainOnOneRank) { expect_good_training(1); }
TEST(Digits, TrainOnTwoRanks) { expect_good_training(2); }
TEST(Digits, TrainOnThreeRanks) { expect_good_training(3); }

TEST(Digits, WithoutTheAveragingRanksAndMetricsDisagree) {
  test::run_ranks(2, [] {
    const auto outcome = train({.epochs = 1, .averages = false});
    EXPECT_FALSE(outcome.epochs.front().equal_parameters);
    EXPECT_EQ(outcome.predictions.size(0), kTestSamples);
    EXPECT_FALSE(torch::equal(outcome.predictions, outcome.predictions_alone));
    EXPECT_GT(outcome.largest_difference, 0.1);
  });
}

}  // namespace
}  // namespace lockstep
