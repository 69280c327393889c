#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <functional>
#include <iostream>
#include <vector>

#include "lockstep/base/exit_code.h"
#include "lockstep/launch/debug_launcher.h"

namespace lockstep::bench {

/// Of the geometric mean of ratios, with 95 % confidence.
struct Interval {
  double low, middle, high;
};

/// How long two things take against each other.
struct Comparison {
  Interval ratio;        ///< of the second's time to the first's
  double first_seconds;  ///< the mean
};

/// Times two things in the order A B B A in every round, so that a drift of the machine hits both alike.
/// @param first, second  run once and return their seconds
/// @param rounds         40 or more, for which Student's t is 2.03 or less
inline Comparison interleave(int rounds, const std::function<double()>& first, const std::function<double()>& second) {
  first();
  second();
  std::vector<double> log_ratios;
  double first_sum = 0;
  for (int round = 0; round < rounds; ++round) {
    double of_first = first();
    double of_second = second();
    of_second += second();
    of_first += first();
    log_ratios.push_back(std::log(of_second / of_first));
    first_sum += of_first / 2;
  }
  double mean = 0;
  for (const double value : log_ratios) mean += value / rounds;
  double variance = 0;
  for (const double value : log_ratios) variance += (value - mean) * (value - mean) / (rounds - 1);
  const double half = 2.03 * std::sqrt(variance / rounds);
  return {.ratio = {std::exp(mean - half), std::exp(mean), std::exp(mean + half)}, .first_seconds = first_sum / rounds};
}

/// The main of a program `PROGRAM [--rounds N]` that makes such a comparison on 2 ranks.
/// @param measure  called on each rank; throws when a limit is passed
/// @return the exit code: 0, or 1 when it has thrown
inline int compare_on_two_ranks(int argc, char** argv, const char* title, void (*measure)(int rounds)) {
  CLI::App app{title};
  int rounds = 160;
  app.add_option("--rounds", rounds, "rounds of A B B A")->check(CLI::Range(40, 10'000));
  CLI11_PARSE(app, argc, argv);
  try {
    launch::debug_launcher([&] { measure(rounds); }, 2, {.output = launch::Output::inherited});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return to_int(ExitCode::not_well);
  }
  return to_int(ExitCode::ok);
}

}  // namespace lockstep::bench
