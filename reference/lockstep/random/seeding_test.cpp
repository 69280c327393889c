#include "lockstep/random/seeding.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/random/generator.h"

namespace lockstep::random {
namespace {

std::int64_t draw() { return at::randint(0, std::int64_t{1} << 31, {1}, at::kLong).item<std::int64_t>(); }

TEST(RNG_001, SeedsTheDefaultGeneratorAndTheLanguages) {
  set_seed(7);
  const auto drawn = draw();
  const auto languages = std::rand();
  EXPECT_EQ(drawn, 976413892);  // PyTorch after torch.manual_seed(7)
  EXPECT_EQ(default_generator().current_seed(), 7U);
  set_seed(7);
  EXPECT_EQ(draw(), drawn);
  EXPECT_EQ(std::rand(), languages);
  set_seed(8);
  EXPECT_NE(draw(), drawn);
  EXPECT_NE(std::rand(), languages);
}

TEST(RNG_001, DeviceSpecificAddsTheProcessIndex) {
  const std::vector<std::int64_t> of_pytorch{976413892, 47736148, 1565348188};  // seeds 7, 8, 9
  for (int rank = 0; rank < 3; ++rank) {
    set_seed(7, {.device_specific = true, .process_index = rank});
    EXPECT_EQ(default_generator().current_seed(), 7U + static_cast<unsigned>(rank));
    EXPECT_EQ(draw(), of_pytorch[static_cast<std::size_t>(rank)]);
  }
  set_seed(7, {.process_index = 2});
  EXPECT_EQ(default_generator().current_seed(), 7U);
}

TEST(RNG_001, TheGeneratorOfAThreadRankIsSeededToo) {
  const auto generator = make_generator(1);
  set_seed(7, {.device_specific = true, .process_index = 1, .rank_generator = generator});
  EXPECT_EQ(generator.current_seed(), 8U);
}

TEST(RNG_001, DeviceSpecificNeedsAProcessIndex) {
  set_seed(3);
  EXPECT_THROW(set_seed(7, {.device_specific = true}), InvalidArgument);
  EXPECT_EQ(default_generator().current_seed(), 3U);
}

TEST(RNG_001, DeterministicSwitchesDeterministicAlgorithmsOn) {
  ASSERT_FALSE(at::globalContext().deterministicAlgorithms());
  set_seed(7);
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
  set_seed(7, {.deterministic = true});
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_FALSE(at::globalContext().deterministicAlgorithmsWarnOnly());
  set_seed(7);
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  at::globalContext().setDeterministicAlgorithms(false, false);
}

TEST(RNG_001, TheAccountSeesTheSeeding) {
  const auto account = std::make_shared<accounting::Account>(0);
  std::vector<std::string> uses;
  const auto subscription = account->subscribe([&uses](const accounting::Stamp&, const accounting::Event& event) {
    const auto& use = std::get<accounting::GeneratorUse>(event);
    uses.push_back(use.generator + " " + use.use);
  });
  set_seed(7, {.account = account});
  EXPECT_EQ(uses, (std::vector<std::string>{"torch seed"}));
}

}  // namespace
}  // namespace lockstep::random
