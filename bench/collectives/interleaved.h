#pragma once

#include <cmath>
#include <functional>
#include <vector>

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

}  // namespace lockstep::bench
