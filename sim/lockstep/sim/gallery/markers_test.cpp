#include "lockstep/sim/gallery/markers.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sim::gallery {
namespace {

std::string message_of(std::string_view source, const std::string& file = "order.cpp") {
  try {
    parse_markers(source, file);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

void expect_part(const std::string& message, std::string_view part) {
  EXPECT_NE(message.find(part), std::string::npos) << "looked for " << part << " in " << message;
}

#define EXPECT_REFUSED(source, part) expect_part(message_of(source), part)
#define EXPECT_SCRIPT_REFUSED(source, part) expect_part(message_of(source, "order_x.py"), part)

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
  EXPECT_REFUSED("LOCKSTEP_LEGAL(fine, 2) {\n  x();  // verdict: rank 1 here\n}\n", "a marker within a fault");
}

TEST(Markers, AFaultHasExactlyOne) {
  EXPECT_REFUSED("LOCKSTEP_FAULT(one, 2) {\n}\nLOCKSTEP_FAULT(two, 2) {\n}\n", "order.cpp:3: expected a marker in one");
  EXPECT_REFUSED("LOCKSTEP_FAULT(last, 2) {\n}\n", "a marker in last");
  EXPECT_REFUSED("LOCKSTEP_FAULT(two, 2) {\n a();  // verdict: rank 1 here\n b();  // verdict: rank 1 here\n}\n",
                 "order.cpp:3: expected one marker in two");
  EXPECT_REFUSED("x();  // verdict: rank 1 here\n", "a marker within a fault");
}

TEST(Markers, WhatIsMisspeltIsRefusedAndNotPassedOver) {
  EXPECT_REFUSED("LOCKSTEP_FAULT(a, 3) {\n  x();  // verdict: rank one here\n}\n", "order.cpp:2: expected // verdict");
  EXPECT_REFUSED("LOCKSTEP_FAULT(a, 3) {\n  x();  // verdict: rank 1 here: hang\n}\n", "mismatch|deadlock|rank_failed");
  EXPECT_REFUSED("LOCKSTEP_FAULT(a, 3) {\n  x();  // verdict: rank 3 here\n}\n", "one of the ranks of a");
  EXPECT_REFUSED("LOCKSTEP_FAULT(a) {\n", "LOCKSTEP_FAULT(name, ranks) {");
}

TEST(Markers, AScriptIsAProgramThatHasItsNameFromTheFile) {
  const std::string script = R"(# fault, 3 ranks: order
# Calls in another order.
import torch.distributed as dist

dist.recv(x, src=left)  # verdict: rank 2 here: deadlock # symmetric
)";
  const auto markers = parse_markers(script, "python/order_x.py");
  ASSERT_EQ(markers.size(), 1U);
  EXPECT_EQ(markers.at("order_x"), (Marker{.rank = 2, .line = 5, .verdict = "deadlock", .is_symmetric = true}));
  EXPECT_EQ(parse_script_heading(script, "order_x.py"), (ScriptHeading{.kind = "order", .num_ranks = 3}));
  EXPECT_EQ(parse_script_heading("# legal, 12 ranks: uneven_times", "x.py"),
            (ScriptHeading{.kind = "uneven_times", .num_ranks = 12, .is_legal = true}));
}

TEST(Markers, AScriptSaysInItsFirstLineWhatItIs) {
  const std::string fault = "# fault, 3 ranks: order\n";
  EXPECT_SCRIPT_REFUSED("import torch\n" + fault, "order_x.py:1: expected # fault, N ranks: KIND");
  EXPECT_SCRIPT_REFUSED("# faults, 3 ranks: order\n", "# fault, N ranks: KIND");
  EXPECT_SCRIPT_REFUSED(fault + "x()\n", "a marker in order_x");
  EXPECT_SCRIPT_REFUSED(fault + "x()  # verdict: rank 3 here\n", "one of the ranks of order_x");
  EXPECT_SCRIPT_REFUSED(fault + "x()  # verdict: rank 1\n", "order_x.py:2: expected # verdict: rank R here");
  EXPECT_SCRIPT_REFUSED("# legal, 3 ranks: order\nx()  # verdict: rank 1 here\n", "a marker within a fault");
}

TEST(Markers, AFileThatIsNotThereIsAnError) {
  EXPECT_THROW(read_markers("no-such-file.cpp"), FileError);
  EXPECT_THROW(read_script_heading("no-such-file.py"), FileError);
}

}  // namespace
}  // namespace lockstep::sim::gallery
