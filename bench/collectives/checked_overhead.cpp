// What checking costs end to end: an all-reduce over Gloo with and without the checked backend, on 2 ranks, in the
// order A B B A in every round so that a drift of the machine hits both alike. Prints the ratio with its 95 % interval.
//
//   checked_overhead [--rounds 160]
//
// Exit code 0 if the intervals lie below the limits of docs/benchmarks.md, 1 if not.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <iostream>
#include <vector>

#include "lockstep/base/exit_code.h"
#include "lockstep/launch/debug_launcher.h"
#include "lockstep/state/partial_state.h"

namespace {

using lockstep::comm::ProcessGroup;

struct Case {
  const char* name;
  std::int64_t num_elements;  // float32
  int calls_per_turn;
  double limit;  // of the upper end of the ratio's interval
};
constexpr Case kCases[] = {{"1 MiB", 262'144, 30, 1.05}, {"4 bytes", 1, 300, 1.03}};

double seconds_per_call(const ProcessGroup& group, const at::Tensor& tensor, int calls) {
  group.barrier().wait();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) group.all_reduce(tensor).wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

struct Interval {
  double low, middle, high;
};

// Of the geometric mean of the rounds' ratios; Student's t for 40 rounds and more is 2.02 and less.
Interval interval_of(const std::vector<double>& log_ratios) {
  const auto count = static_cast<double>(log_ratios.size());
  double mean = 0;
  for (const double value : log_ratios) mean += value / count;
  double variance = 0;
  for (const double value : log_ratios) variance += (value - mean) * (value - mean) / (count - 1);
  const double half = 2.03 * std::sqrt(variance / count);
  return {std::exp(mean - half), std::exp(mean), std::exp(mean + half)};
}

void measure(int rounds) {
  const lockstep::state::PartialState state;
  const auto& plain = state.world_group();
  const auto checked = plain.new_group({0, 1}, "checked", "checked");
  bool is_well = true;
  for (const auto& [name, num_elements, calls, limit] : kCases) {
    const auto tensor = at::zeros({num_elements});
    seconds_per_call(plain, tensor, calls);
    seconds_per_call(checked, tensor, calls);
    std::vector<double> log_ratios;
    double plain_sum = 0;
    for (int round = 0; round < rounds; ++round) {
      const double a = seconds_per_call(plain, tensor, calls);
      const double b = seconds_per_call(checked, tensor, calls) + seconds_per_call(checked, tensor, calls);
      const double a_sum = a + seconds_per_call(plain, tensor, calls);
      log_ratios.push_back(std::log(b / a_sum));
      plain_sum += a_sum / 2;
    }
    const auto [low, middle, high] = interval_of(log_ratios);
    if (!state.is_main_process()) continue;
    std::cout << fmt::format("{:8} plain {:8.1f} us  ratio {:.4f}  95 % interval {:.4f} to {:.4f}  limit {:.2f}\n",
                             name, plain_sum / rounds * 1e6, middle, low, high, limit);
    is_well = is_well && high < limit;
  }
  if (!is_well) throw std::runtime_error("the checked backend costs more than its limit");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What the checked backend costs, against plain Gloo."};
  int rounds = 160;
  app.add_option("--rounds", rounds, "rounds of A B B A")->check(CLI::Range(10, 10'000));
  CLI11_PARSE(app, argc, argv);
  try {
    lockstep::launch::debug_launcher([rounds] { measure(rounds); }, 2, {.output = lockstep::launch::Output::inherited});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return lockstep::to_int(lockstep::ExitCode::not_well);
  }
  return lockstep::to_int(lockstep::ExitCode::ok);
}
