#include "lockstep/sim/device/byte_size.h"

#include <gtest/gtest.h>

#include <limits>

#include "lockstep/base/error.h"
#include "run_ranks.h"

namespace lockstep::sim {
namespace {

TEST(ByteSize, IsANumberAndItsUnit) {
  EXPECT_EQ(parse_bytes("1B"), 1);
  EXPECT_EQ(parse_bytes("3KB"), 3'000);
  EXPECT_EQ(parse_bytes("3KiB"), 3'072);
  EXPECT_EQ(parse_bytes("64MB"), 64'000'000);
  EXPECT_EQ(parse_bytes("64MiB"), 67'108'864);
  EXPECT_EQ(parse_bytes("64 MiB"), 67'108'864);
  EXPECT_EQ(parse_bytes("80GB"), 80'000'000'000);
  EXPECT_EQ(parse_bytes("80GiB"), 85'899'345'920);
  EXPECT_EQ(parse_bytes("9223372036854775807B"), std::numeric_limits<std::int64_t>::max());
}

TEST(ByteSize, AnythingElseIsRefusedWithWhatIsExpected) {
  for (const auto* text :
       {"", "MiB", "64", "64 ", "64M", "64mib", "64MiBs", "64MiB ", "1.5GiB", "-1B", "+1B", "0B", "0GiB", " 64MiB",
        "6 4MiB", "0x40B", "9223372036854775808B", "8589934592GiB", "99999999999999999999B"}) {
    const auto message = test::message_of<InvalidArgument>([text] { parse_bytes(text); });
    EXPECT_NE(message.find("expected a whole number above 0 and a unit, as in 64MiB, got '" + std::string(text) + "'"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("KiB, MiB, GiB"), std::string::npos) << message;
  }
}

TEST(ByteSize, SaysWhyWhereItIsNotPlain) {
  const auto message_of = [](std::string_view text) {
    return test::message_of<InvalidArgument>([text] { parse_bytes(text); });
  };
  EXPECT_NE(message_of("64").find("'64', which has no unit"), std::string::npos);
  EXPECT_NE(message_of("8589934592GiB").find(", more than any memory has"), std::string::npos);
}

TEST(ByteSize, IsShownAsPyTorchShowsIt) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(1023), "1023 bytes");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(3'670'016), "3.50 MiB");
  EXPECT_EQ(format_bytes(std::int64_t{1} << 30), "1.00 GiB");
  EXPECT_EQ(format_bytes(std::int64_t{1} << 42), "4096.00 GiB");
}

}  // namespace
}  // namespace lockstep::sim
