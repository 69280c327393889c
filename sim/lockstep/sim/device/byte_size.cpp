#include "lockstep/sim/device/byte_size.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::sim {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::int64_t kKi = 1024;
constexpr std::array kUnits = {
    Unit{"B", 1},          Unit{"KB", 1'000},         Unit{"MB", 1'000'000},     Unit{"KiB", kKi},
    Unit{"MiB", kKi* kKi}, Unit{"GB", 1'000'000'000}, Unit{"GiB", kKi* kKi* kKi}};

InvalidArgument not_a_size(std::string_view got, std::string_view why) {
  return InvalidArgument({.where = "memory size",
                          .expected = "a whole number above 0 and a unit, as in 64MiB",
                          .got = "'" + std::string(got) + "'" + std::string(why),
                          .fix = "Units: B, KB, MB, GB (thousands), KiB, MiB, GiB (1024s)."});
}

}  // namespace

std::int64_t parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::invalid_argument) throw not_a_size(text, "");
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest.empty()) throw not_a_size(text, ", which has no unit");
  const auto unit =
      std::ranges::find(kUnits, rest.substr(std::min(rest.find_first_not_of(' '), rest.size())), &Unit::name);
  if (unit == kUnits.end()) throw not_a_size(text, "");
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / unit->bytes);
  if (error == std::errc::result_out_of_range || number > most) throw not_a_size(text, ", more than any memory has");
  if (number == 0) throw not_a_size(text, "");
  return static_cast<std::int64_t>(number) * unit->bytes;
}

std::string format_bytes(std::int64_t bytes) {
  if (bytes < kKi) return std::to_string(bytes) + " bytes";
  static constexpr std::array names = {"KiB", "MiB", "GiB"};
  auto size = static_cast<double>(bytes) / kKi;
  std::size_t name = 0;
  for (; name + 1 < names.size() && size >= kKi; ++name) size /= kKi;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f %s", size, names[name]);
  return text.data();
}

}  // namespace lockstep::sim
