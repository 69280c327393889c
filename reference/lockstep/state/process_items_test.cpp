// One row per item that a process has once although it belongs to a rank: changed on one rank, it is as it was on the
// other, whoever runs when.
#include "lockstep/state/process_items.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/core/DefaultDtype.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <sstream>

namespace lockstep::state {
namespace {

std::ostringstream other_output;

struct Item {
  const char* name;
  std::function<void()> change;
  std::function<std::string()> look;  // at the process, not at the table
};

std::string text(auto value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

std::vector<Item> items() {
  return {
      {"default generator", [] { static_cast<void>(at::rand({7})); },
       [] {
         auto generator = at::detail::getDefaultCPUGenerator();
         const std::lock_guard lock(generator.mutex());
         const auto state = generator.get_state();
         return std::string(static_cast<const char*>(state.const_data_ptr()), static_cast<std::size_t>(state.numel()));
       }},
      {"default dtype", [] { c10::set_default_dtype(caffe2::TypeMeta::Make<double>()); },
       [] { return text(at::ones({1}).scalar_type()); }},
      {"deterministic algorithms", [] { at::globalContext().setDeterministicAlgorithms(true, false); },
       [] { return text(at::globalContext().deterministicAlgorithms()); }},
      {"deterministic, warning only", [] { at::globalContext().setDeterministicAlgorithms(true, true); },
       [] { return text(at::globalContext().deterministicAlgorithmsWarnOnly()); }},
      {"output", [] { std::cout.rdbuf(other_output.rdbuf()); },
       [] { return text(static_cast<void*>(std::cout.rdbuf())); }},
      {"logger's level", [] { log::set_settings({.level = log::Level::error, .rank = log::settings().rank}); },
       [] { return text(static_cast<int>(log::settings().level)); }},
      {"logger's rank", [] { log::set_settings({.level = log::settings().level, .rank = 5}); },
       [] { return text(log::settings().rank.value_or(-1)); }},
  };
}

TEST(ProcessItems, AChangeOnOneRankIsNotSeenOnTheOther) {
  const auto at_start = ProcessItems::capture();
  for (const auto& item : items()) {
    // Two ranks that start alike, and run in turns: 0, 1, 0.
    auto rank_0 = at_start;
    auto rank_1 = at_start;
    rank_0.install();
    const auto original = item.look();
    item.change();
    const auto changed = item.look();
    rank_0 = ProcessItems::capture();
    rank_1.install();
    const auto on_rank_1 = item.look();
    rank_1 = ProcessItems::capture();
    rank_0.install();
    const auto on_rank_0 = item.look();
    at_start.install();
    EXPECT_NE(changed, original) << item.name << ": the test changes nothing";
    EXPECT_EQ(on_rank_1, original) << item.name;
    EXPECT_EQ(on_rank_0, changed) << item.name;
    EXPECT_EQ(item.look(), original) << item.name;
  }
}

TEST(ProcessItems, EachRankDrawsItsOwnSequence) {
  const auto at_start = ProcessItems::capture();
  at::manual_seed(1);
  auto rank_0 = ProcessItems::capture();
  at::manual_seed(2);
  auto rank_1 = ProcessItems::capture();
  at::manual_seed(1);
  const auto alone = at::rand({4});
  std::vector<at::Tensor> drawn;
  for (int i = 0; i < 4; ++i) {
    rank_0.install();
    drawn.push_back(at::rand({1}));
    rank_0 = ProcessItems::capture();
    rank_1.install();
    static_cast<void>(at::rand({3}));
    rank_1 = ProcessItems::capture();
  }
  at_start.install();
  EXPECT_TRUE(at::cat(drawn).equal(alone));
}

}  // namespace
}  // namespace lockstep::state
