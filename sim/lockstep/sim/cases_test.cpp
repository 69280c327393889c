// Failures from the field, restated as small inputs: what was a hang, an abort or a silent wrong number ends in a
// verdict that names the cause. Those of one rank's arithmetic alone (J5, M13) have their tests beside that code.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "digits.h"
#include "lockstep/accelerator/accelerator.h"
#include "lockstep/sim/main.h"
#include "lockstep/state/environment.h"

namespace lockstep::sim {
namespace {

using comm::Member;
using Json = nlohmann::json;

LaunchOptions quiet() { return {.output = RankOutput::kept, .is_quiet = true, .timeout = std::chrono::seconds(60)}; }

Json verdict_of(int num_ranks, const std::function<void(Rank&)>& function, LaunchOptions options = quiet()) {
  return Json::parse(launch(num_ranks, function, std::move(options)).verdict);
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(CaseM3, EqualBytesOfDifferentTypesAreRefusedOnBoth) {
  const auto verdict = verdict_of(2, [](Rank& rank) {
    rank.world().all_reduce(rank.rank() == 0 ? torch::ones({2}) : torch::ones({2}, torch::kInt)).wait();
  });
  EXPECT_EQ(verdict["verdict"], "mismatch");
  EXPECT_HAS(verdict["cause"].get<std::string>(), "float32 [2]");
  EXPECT_HAS(verdict["cause"].get<std::string>(), "int32 [2]");
}

// Two sums of one shape change places on rank 1. Their names tell; without names, the lines do, if one asks.
void swapped(Rank& rank, bool are_named) {
  const auto a = torch::full({1}, rank.rank() + 1.0);
  const auto b = torch::full({1}, rank.rank() + 100.0);
  if (are_named) name(a, "a");
  if (are_named) name(b, "b");
  if (rank.rank() == 0) {
    rank.world().all_reduce(a).wait();
    rank.world().all_reduce(b).wait();
  } else {
    rank.world().all_reduce(b).wait();
    rank.world().all_reduce(a, {.op = comm::ReduceOp::sum}).wait();
  }
}

TEST(CaseM5, SwappedCallsOfNamedTensorsAreReported) {
  const auto verdict = verdict_of(2, [](Rank& rank) { swapped(rank, true); });
  EXPECT_EQ(verdict["verdict"], "mismatch");
  EXPECT_HAS(verdict["cause"].get<std::string>(), "of a)");
  EXPECT_HAS(verdict["cause"].get<std::string>(), "of b)");
}

TEST(CaseM5, WithoutNamesTheLinesTellIfOneAsks) {
  EXPECT_EQ(verdict_of(2, [](Rank& rank) { swapped(rank, false); })["verdict"], "ok");
  auto strict = quiet();
  strict.strict_places = true;
  EXPECT_EQ(verdict_of(
                2, [](Rank& rank) { swapped(rank, false); }, strict)["verdict"],
            "mismatch");
}

TEST(CaseM7, AMessageOfAnotherLengthIsRefusedWithBothSizes) {
  for (const auto& [sent, received] : {std::pair(4, 2), std::pair(2, 4)}) {
    const auto verdict = verdict_of(2, [sent = sent, received = received](Rank& rank) {
      if (rank.rank() == 0) {
        rank.world().send(torch::zeros({sent}), Member::global(1)).wait();
      } else {
        rank.world().receive(torch::zeros({received}), Member::global(0)).wait();
      }
    });
    EXPECT_EQ(verdict["verdict"], "mismatch");
    EXPECT_HAS(verdict["cause"].get<std::string>(), "float32 [" + std::to_string(sent) + "]");
    EXPECT_HAS(verdict["cause"].get<std::string>(), "float32 [" + std::to_string(received) + "]");
  }
}

TEST(CaseM9, TheRootMayBeNamedByItsRankInTheGroupOrInTheWorld) {
  const auto verdict = verdict_of(4, [](Rank& rank) {
    const auto group = rank.world().new_group({2, 3}, "pair");
    if (!group) return;
    for (const auto root : {Member::global(2), Member::group(0)}) {
      const auto x = torch::full({1}, rank.rank());
      group.broadcast(x, {.root = root}).wait();
      if (x.item<float>() != 2) throw std::runtime_error("another source");
    }
  });
  EXPECT_EQ(verdict["verdict"], "ok") << verdict;
}

TEST(CaseM11, MessagesThatCrossArriveInWhateverOrderTheyArePosted) {
  for (const std::int64_t size : {std::int64_t{1}, std::int64_t{16} << 20}) {
    const auto verdict = verdict_of(2, [size](Rank& rank) {
      const auto other = Member::global(1 - rank.rank());
      for (const bool sends_first : {true, false}) {
        std::vector<comm::Work> works;
        std::vector<torch::Tensor> received;
        for (int i = 0; i < 3; ++i) {
          received.push_back(torch::zeros({size}));
          const auto send = [&] { works.push_back(rank.world().send(torch::full({size}, i + 1.0), other)); };
          if (sends_first) send();
          works.push_back(rank.world().receive(received.back(), other));
          if (!sends_first) send();
        }
        for (auto& work : works) work.wait();
        for (int i = 0; i < 3; ++i) {
          if (!received[static_cast<std::size_t>(i)].eq(i + 1).all().item<bool>())
            throw std::runtime_error("wrong data");
        }
      }
    });
    EXPECT_EQ(verdict["verdict"], "ok") << verdict;
  }
}

TEST(CaseN1, ARankThatStopsByItsOwnMetricIsNamed) {
  const auto verdict = verdict_of(3, [](Rank& rank) {
    for (int epoch = 0; epoch < 5; ++epoch) {
      rank.world().all_reduce(torch::ones({4})).wait();
      const double metric = rank.rank() == 0 ? 0.9 : 0.5;
      if (metric > 0.8) break;
    }
  });
  EXPECT_EQ(verdict["verdict"], "deadlock");
  EXPECT_EQ(verdict["first"], 0);
  EXPECT_HAS(verdict["cause"].get<std::string>(), "for rank 0, which has left after allreduce #1");
}

TEST(CaseN3, AnExceptionOnOneRankEndsAllWithItsReasonOnTop) {
  const auto verdict = verdict_of(2, [](Rank& rank) {
    for (int batch = 0; batch < 50; ++batch) {
      if (rank.rank() == 0 && batch == 41) throw std::out_of_range("index 41 is out of range");
      rank.world().all_reduce(torch::ones({1})).wait();
    }
  });
  EXPECT_EQ(verdict["verdict"], "rank_failed");
  EXPECT_EQ(verdict["first"], 0);
  EXPECT_HAS(verdict["cause"].get<std::string>(), "index 41 is out of range");
  EXPECT_HAS(verdict["cause"].get<std::string>(), "allreduce #41");
}

TEST(CaseN7, WhoIsBehindIsNamedAndNotWhoIsAhead) {
  auto options = quiet();
  options.stall = std::chrono::milliseconds(400);
  const auto verdict = verdict_of(
      4,
      [](Rank& rank) {
        rank.world().all_reduce(torch::ones({1})).wait();
        if (rank.rank() == 2) std::this_thread::sleep_for(std::chrono::seconds(5));
        rank.world().all_reduce(torch::ones({1})).wait();
      },
      options);
  EXPECT_EQ(verdict["verdict"], "straggler");
  EXPECT_EQ(verdict["first"], 2);
}

TEST(CaseN9, TheChecksDoNotKillTheJobThatTheyExplain) {
  const auto verdict = verdict_of(2, [](Rank&) {
    Accelerator accelerator;
    const auto model = accelerator.prepare(torch::nn::Linear(1, 1));
    accelerator.backward(model(torch::ones({1, 1})).sum());
  });
  EXPECT_EQ(verdict["verdict"], "ok") << verdict;
}

struct TwoImpl : torch::nn::Module {
  TwoImpl() : a(register_module("a", torch::nn::Linear(1, 1))), b(register_module("b", torch::nn::Linear(1, 1))) {}
  torch::Tensor forward(const torch::Tensor& x, bool uses_a) { return uses_a ? a(x) : b(x); }
  torch::nn::Linear a, b;
};
TORCH_MODULE(Two);

TEST(CaseJ1, AnUnusedParameterIsNamedAtTheEndOfTheFirstBackward) {
  const auto verdict = verdict_of(2, [](Rank& rank) {
    Accelerator accelerator;
    const auto model = accelerator.prepare(Two());
    accelerator.backward(model(torch::full({1, 1}, rank.rank() + 1.0), true).sum());
  });
  EXPECT_EQ(verdict["verdict"], "rank_failed");
  EXPECT_HAS(verdict["cause"].get<std::string>(), "b.weight");
}

TEST(CaseJ3, ABranchPerRankIsNamedUnlessTheSearchIsOn) {
  const auto train = [](bool searches) {
    return verdict_of(2, [searches](Rank& rank) {
      Accelerator accelerator({.ddp_kwargs = {.find_unused_parameters = searches}});
      const auto model = accelerator.prepare(Two());
      accelerator.backward(model(torch::ones({1, 1}), rank.rank() == 0).sum());
      if (model->a->weight.grad().item<float>() != 0.5F) throw std::runtime_error("not averaged");
    });
  };
  EXPECT_EQ(train(false)["verdict"], "rank_failed");
  EXPECT_EQ(train(true)["verdict"], "ok");
}

// J7, and that the checks change no bits: 50 steps on the digits, with a static graph and without.
TEST(Harmless, TrainingHasTheSameBitsWithAndWithoutTheChecks) {
  const auto folder = std::filesystem::temp_directory_path();
  for (const bool is_static : {false, true}) {
    std::map<std::string, std::string> bits;
    for (const std::string backend : {"checked", "checked:gloo"}) {
      const auto file = folder / ("parameters-" + std::to_string(is_static));
      auto options = quiet();
      options.check = backend == "checked" ? "full" : "off";
      options.environment = state::Environment::of_process().variables();
      options.environment["LOCKSTEP_BACKEND"] = backend;
      const auto verdict = verdict_of(
          2,
          [&](Rank& rank) {
            torch::manual_seed(3);
            Accelerator accelerator({.ddp_kwargs = {.static_graph = is_static}});
            const auto data = digits::load(LOCKSTEP_EXAMPLE_DATA);
            digits::Net net;
            data::DataLoader digits_loader(data.train, {.batch_size = 14});
            auto [model, optimizer, loader] =
                accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.05), digits_loader);
            int step = 0;
            for (const Value& batch : *loader) {
              if (step++ == 50) break;
              accelerator.backward(torch::nn::functional::cross_entropy(model(batch[0].tensor()), batch[1].tensor()));
              optimizer->step();
              optimizer->zero_grad();
            }
            if (rank.rank() != 0) return;
            std::ofstream out(file, std::ios::binary);
            for (const auto& parameter : net->parameters()) {
              const auto values = parameter.detach().contiguous();
              out.write(static_cast<const char*>(values.const_data_ptr()),
                        static_cast<std::streamsize>(values.nbytes()));
            }
          },
          options);
      ASSERT_EQ(verdict["verdict"], "ok") << verdict;
      std::ifstream in(file, std::ios::binary);
      bits[backend] = {std::istreambuf_iterator<char>(in), {}};
      std::filesystem::remove(file);
    }
    EXPECT_GT(bits["checked"].size(), 100'000U);
    EXPECT_TRUE(bits["checked"] == bits["checked:gloo"]) << "static graph: " << is_static;
  }
}

}  // namespace
}  // namespace lockstep::sim
