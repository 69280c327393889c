#include "lockstep/sim/gallery/markers.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sim::gallery {
namespace {

std::string message_of(std::string_view source) {
  try {
    parse_markers(source, "order.cpp");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_REFUSED(source, part) \
  EXPECT_NE(message_of(source).find(part), std::string::npos) << "looked for " << (part) << " in " << message_of(source)

TEST(Markers, EachFaultHasTheRankAndTheLineOfItsMarker) {
  const auto markers = parse_markers(R"(// Calls in another order.
LOCKSTEP_FAULT(reduce_first, 3) {
  rank.world().reduce(x).wait();  // verdict: rank 1 here: mismatch
}

LOCKSTEP_FAULT(ring, 4) {
  rank.world().receive(x, left).wait();  // verdict: rank 0 here: deadlock // symmetric
}

LOCKSTEP_FAULT(either, 2) {
  rank.world().barrier().wait();  // verdict: rank 1 here
}
)",
                                     "order.cpp");
  ASSERT_EQ(markers.size(), 3U);
  EXPECT_EQ(markers.at("reduce_first"), (Marker{.rank = 1, .line = 3, .verdict = "mismatch"}));
  EXPECT_EQ(markers.at("ring"), (Marker{.rank = 0, .line = 7, .verdict = "deadlock", .is_symmetric = true}));
  EXPECT_EQ(markers.at("either"), (Marker{.rank = 1, .line = 11}));
}

TEST(Markers, LegalProgramsHaveNone) {
  EXPECT_TRUE(parse_markers("LOCKSTEP_LEGAL(fine, 2) {\n}\n", "legal/order.cpp").empty());
  EXPECT_REFUSED("LOCKSTEP_LEGAL(fine, 2) {\n  x();  // verdict: rank 1 here\n}\n", "a marker within a LOCKSTEP_FAULT");
}

TEST(Markers, AFaultHasExactlyOne) {
  EXPECT_REFUSED("LOCKSTEP_FAULT(one, 2) {\n}\nLOCKSTEP_FAULT(two, 2) {\n}\n", "order.cpp:3: expected a marker in one");
  EXPECT_REFUSED("LOCKSTEP_FAULT(last, 2) {\n}\n", "a marker in last");
  EXPECT_REFUSED("LOCKSTEP_FAULT(two, 2) {\n a();  // verdict: rank 1 here\n b();  // verdict: rank 1 here\n}\n",
                 "order.cpp:3: expected one marker in two");
  EXPECT_REFUSED("x();  // verdict: rank 1 here\n", "a marker within a LOCKSTEP_FAULT");
}

TEST(Markers, WhatIsMisspeltIsRefusedAndNotPassedOver) {
  EXPECT_REFUSED("LOCKSTEP_FAULT(a, 3) {\n  x();  // verdict: rank one here\n}\n", "order.cpp:2: expected // verdict");
  EXPECT_REFUSED("LOCKSTEP_FAULT(a, 3) {\n  x();  // verdict: rank 1 here: hang\n}\n", "mismatch|deadlock|rank_failed");
  EXPECT_REFUSED("LOCKSTEP_FAULT(a, 3) {\n  x();  // verdict: rank 3 here\n}\n", "one of the ranks of a");
  EXPECT_REFUSED("LOCKSTEP_FAULT(a) {\n", "LOCKSTEP_FAULT(name, ranks) {");
}

TEST(Markers, AFileThatIsNotThereIsAnError) { EXPECT_THROW(read_markers("no-such-file.cpp"), FileError); }

}  // namespace
}  // namespace lockstep::sim::gallery
