#include "lockstep/accelerator/profiler.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/base/error.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using nlohmann::json;
using state::as_rank;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

/// Is gone with everything in it at the end of a test.
class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "lockstep-XXXXXX";
    LOCKSTEP_ASSERT(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void train_a_step() {
  const auto weight = at::ones({8, 8}).set_requires_grad(true);
  at::mm(weight, at::ones({8, 8})).sum().backward();
}

json trace_in(const std::string& file) { return json::parse(std::ifstream(file)); }

std::set<std::string> names_in(const json& trace) {
  std::set<std::string> names;
  for (const auto& event : trace["traceEvents"]) names.insert(event.value("name", ""));
  return names;
}

void expect_complete_events(const json& trace) {
  int complete = 0;
  for (const auto& event : trace["traceEvents"]) {
    ASSERT_TRUE(event.contains("ph")) << event;
    if (event["ph"] != "X") continue;
    ++complete;
    for (const auto* field : {"ts", "dur", "pid", "tid", "name"}) ASSERT_TRUE(event.contains(field)) << event;
  }
  EXPECT_GT(complete, 5);
}

TEST(KW_020, EachRankWritesATraceAndAllWait) {
  const Folder folder;
  const auto traces = folder / "made/for/it";
  test::run_ranks(2, [&traces] {
    const Accelerator accelerator({.profile_kwargs = {.output_trace_dir = traces}});
    {
      auto profiler = accelerator.profile();
      for (int step = 0; step < 3; ++step) {
        train_a_step();
        profiler.step();
      }
    }
    // Both are there when the scope has ended on any rank.
    for (const auto* name : {"/profile_0.json", "/profile_1.json"}) {
      ASSERT_TRUE(std::filesystem::exists(traces + name));
    }
    const auto trace = trace_in(traces + "/profile_" + std::to_string(accelerator.process_index()) + ".json");
    expect_complete_events(trace);
    const auto names = names_in(trace);
    for (const auto* name : {"aten::mm", "ProfilerStep#0", "ProfilerStep#2"}) EXPECT_TRUE(names.contains(name)) << name;
  });
}

TEST(KW_020, AnArgumentStandsBeforeTheOptions) {
  const Folder folder;
  as_rank(kCpu, [&] {
    const Accelerator accelerator({.profile_kwargs = {.output_trace_dir = folder / "options"}});
    {
      auto profiler = accelerator.profile(config::ProfileKwargs{.output_trace_dir = folder / "argument"});
      train_a_step();
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "options"));
    EXPECT_TRUE(std::filesystem::exists(folder / "argument/profile_0.json"));
    { auto profiler = accelerator.profile(config::ProfileKwargs{}); }  // no folder, no file
  });
}

TEST(KW_020, AnExceptionInsideLeavesNoFile) {
  const Folder folder;
  as_rank(kCpu, [&] {
    const Accelerator accelerator({.profile_kwargs = {.output_trace_dir = folder / "traces"}});
    EXPECT_THROW(
        {
          auto profiler = accelerator.profile();
          train_a_step();
          throw std::runtime_error("in training");
        },
        std::runtime_error);
    EXPECT_FALSE(std::filesystem::exists(folder / "traces"));
    { auto profiler = accelerator.profile(); }  // and the next one works
    EXPECT_TRUE(std::filesystem::exists(folder / "traces/profile_0.json"));
  });
}

TEST(KW_020, MayEndBeforeItsScope) {
  const Folder folder;
  as_rank(kCpu, [&] {
    const Accelerator accelerator({.profile_kwargs = {.output_trace_dir = folder / "traces"}});
    auto profiler = accelerator.profile();
    train_a_step();
    profiler.stop();
    const auto written = trace_in(folder / "traces/profile_0.json");
    EXPECT_TRUE(names_in(written).contains("aten::mm"));
    EXPECT_THROW(profiler.step(), RuntimeError);
    profiler.stop();
    EXPECT_NO_THROW(profiler.export_chrome_trace(folder / "again.json"));
  });
}

TEST(KW_019, TraceIsReadyAfterEachCycle) {
  as_rank(kCpu, [] {
    const Accelerator accelerator;
    std::vector<std::int64_t> ready_at;
    auto profiler = accelerator.profile(config::ProfileKwargs{
        .schedule_option = config::ProfileSchedule{.wait = 1, .warmup = 1, .active = 1, .repeat = 1},
        .on_trace_ready = [&](Profiler& mine) { ready_at.push_back(mine.step_num()); }});
    for (int step = 0; step < 5; ++step) {
      train_a_step();
      profiler.step();
    }
    EXPECT_EQ(ready_at, std::vector<std::int64_t>{3});
  });
}

TEST(KW_019, ExportedTracesHoldTheActiveStepsAlone) {
  const Folder folder;
  as_rank(kCpu, [&] {
    const Accelerator accelerator;
    {
      auto profiler = accelerator.profile(config::ProfileKwargs{
          .schedule_option = config::ProfileSchedule{.wait = 1, .warmup = 1, .active = 2, .repeat = 2},
          .on_trace_ready =
              [&](Profiler& mine) { mine.export_chrome_trace(folder / std::to_string(mine.step_num()) + ".json"); },
          .output_trace_dir = folder / "last"});
      for (int step = 0; step < 10; ++step) {
        train_a_step();
        profiler.step();
      }
    }
    const auto first = names_in(trace_in(folder / "4.json")), second = names_in(trace_in(folder / "8.json"));
    EXPECT_TRUE(first.contains("ProfilerStep#2") && first.contains("ProfilerStep#3"));
    EXPECT_FALSE(first.contains("ProfilerStep#0") || first.contains("ProfilerStep#6"));
    EXPECT_TRUE(second.contains("ProfilerStep#6") && second.contains("ProfilerStep#7"));
    EXPECT_FALSE(second.contains("ProfilerStep#3"));
    EXPECT_EQ(trace_in(folder / "last/profile_0.json"), trace_in(folder / "8.json"));
  });
}

TEST(KW_016, OptionsShowInTheTrace) {
  const Folder folder;
  as_rank(kCpu, [&] {
    const Accelerator accelerator;
    {
      auto profiler = accelerator.profile(config::ProfileKwargs{.record_shapes = true,
                                                                .profile_memory = true,
                                                                .with_stack = true,
                                                                .with_flops = true,
                                                                .with_modules = true,
                                                                .output_trace_dir = folder / "traces"});
      train_a_step();
    }
    const auto trace = trace_in(folder / "traces/profile_0.json");
    bool has_shapes = false, has_flops = false;
    for (const auto& event : trace["traceEvents"]) {
      if (event.value("name", "") != "aten::mm") continue;
      has_shapes |= event["args"].contains("Input Dims");
      has_flops |= event["args"].value("Flops", 0) == 2 * 8 * 8 * 8;
    }
    EXPECT_TRUE(has_shapes);
    EXPECT_TRUE(has_flops);
    EXPECT_TRUE(names_in(trace).contains("[memory]"));
  });
}

// Of frames and modules LibTorch knows those of TorchScript; C++ has none to tell.
TEST(KW_016, StackAndModulesOfTorchScriptShowInTheTrace) {
  const Folder folder;
  torch::jit::Module module("Doubler");
  module.define("def forward(self, x):\n  return torch.add(x, x)\n");
  as_rank(kCpu, [&] {
    const Accelerator accelerator;
    for (const bool on : {true, false}) {
      const auto place = folder / (on ? "on" : "off");
      {
        auto profiler =
            accelerator.profile(config::ProfileKwargs{.with_stack = on, .with_modules = on, .output_trace_dir = place});
        module.forward({at::ones({2})});
      }
      const auto trace = trace_in(place + "/profile_0.json");
      bool has_stack = false, has_modules = false;
      for (const auto& event : trace["traceEvents"]) {
        if (event.value("name", "") != "aten::add") continue;
        has_stack |= event["args"].contains("Call stack");
        has_modules |= event["args"].contains("Module Hierarchy");
      }
      EXPECT_EQ(has_stack, on);
      EXPECT_EQ(has_modules, on);
    }
  });
}

TEST(KW_016, Defaults) {
  const config::ProfileKwargs kwargs;
  EXPECT_FALSE(kwargs.activities || kwargs.schedule_option || kwargs.on_trace_ready || kwargs.output_trace_dir);
  EXPECT_FALSE(kwargs.record_shapes || kwargs.profile_memory || kwargs.with_stack || kwargs.with_flops ||
               kwargs.with_modules);
  EXPECT_EQ(kwargs, config::ProfileKwargs{});
  EXPECT_NE(kwargs, config::ProfileKwargs{.with_flops = true});
}

TEST(KW_017, AnUnknownActivityIsRefusedWhenTheProfilerIsMade) {
  as_rank(kCpu, [] {
    const Accelerator accelerator({.profile_kwargs = {.activities = std::vector<std::string>{"gpu"}}});
    EXPECT_THROW(static_cast<void>(accelerator.profile()), InvalidArgument);
    const config::ProfileKwargs all{.activities = std::vector<std::string>{"cpu", "cuda"}};
    EXPECT_NO_THROW(static_cast<void>(accelerator.profile(all)));
  });
}

TEST(Profiler, WhatWasNotRecordedIsNotWritten) {
  const Folder folder;
  as_rank(kCpu, [&] {
    const Accelerator accelerator;
    const auto profile_nothing = [&] {
      auto profiler = accelerator.profile(
          config::ProfileKwargs{.schedule_option = config::ProfileSchedule{.wait = 5, .warmup = 0, .active = 1},
                                .output_trace_dir = folder / "traces"});
      EXPECT_THROW(profiler.export_chrome_trace(folder / "early.json"), AssertionError);
    };
    EXPECT_THROW(profile_nothing(), AssertionError);
    auto profiler = accelerator.profile();
    EXPECT_THROW(static_cast<void>(accelerator.profile()), RuntimeError) << "two at a time";
    train_a_step();
  });
}

TEST(Profiler, RefusesAPlaceThatCannotBeWritten) {
  as_rank(kCpu, [] {
    const Accelerator accelerator;
    const auto profile = [&] {
      auto profiler = accelerator.profile(config::ProfileKwargs{.output_trace_dir = "/dev/null/traces"});
      train_a_step();
    };
    EXPECT_THROW(profile(), FileError);
  });
}

TEST(Profiler, RefusesRanksThatAreThreads) {
  test::run_thread_ranks(2, [] {
    const Accelerator accelerator;
    EXPECT_THROW(static_cast<void>(accelerator.profile()), NotSupported);
  });
}

}  // namespace
}  // namespace lockstep
