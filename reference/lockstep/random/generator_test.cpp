#include "lockstep/random/generator.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::random {
namespace {

std::vector<std::int64_t> draw(const at::Generator& generator, std::int64_t count = 3) {
  const auto drawn = at::randint(0, std::int64_t{1} << 31, {count}, generator, at::kLong);
  return {drawn.data_ptr<std::int64_t>(), drawn.data_ptr<std::int64_t>() + count};
}

// Expected numbers in this file were drawn by PyTorch 2.11.
TEST(Generator, DrawsWhatPyTorchDrawsFromTheSameSeed) {
  const auto generator = make_generator(100);
  EXPECT_EQ(generator.current_seed(), 100U);
  EXPECT_EQ(draw(generator), (std::vector<std::int64_t>{735107864, 1769725799, 113311823}));
}

TEST(Generator, NegativeSeedsCountFromTheTop) {
  const auto generator = make_generator(-3);
  EXPECT_EQ(generator.current_seed(), 18446744073709551613U);
  EXPECT_EQ(draw_seed(generator), 549429411733172103);
  EXPECT_EQ(draw_seed(generator), 3171663838803857356);
}

TEST(Generator, DrawSeedTakesOneDrawOfTheDefaultGenerator) {
  auto generator = default_generator();
  generator.set_current_seed(5);
  EXPECT_EQ(draw_seed(), 4095051218741643470);
  const auto other = make_generator(5);
  draw_seed(other);
  EXPECT_EQ(draw(generator), draw(other));
}

TEST(RNG_004, AStateCarriesTheRecordedSeed) {
  const auto source = make_generator(100);
  draw(source);
  const auto target = make_generator(101);
  set_state(target, get_state(source));
  EXPECT_EQ(target.current_seed(), 100U);
  EXPECT_EQ(draw(target), draw(source));
}

TEST(Generator, AStateIsACopyThatLaterDrawsDoNotChange) {
  const auto generator = make_generator(1);
  const auto state = get_state(generator);
  EXPECT_EQ(state.scalar_type(), at::kByte);
  EXPECT_EQ(state.sizes(), at::IntArrayRef{5056});
  const auto first = draw(generator);
  EXPECT_NE(draw(generator), first);
  set_state(generator, state);
  EXPECT_EQ(draw(generator), first);
}

}  // namespace
}  // namespace lockstep::random
