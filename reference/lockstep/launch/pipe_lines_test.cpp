#include "lockstep/launch/pipe_lines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace lockstep::launch {
namespace {

void write_to(const Pipe& pipe, std::string_view text) {
  ASSERT_EQ(write(pipe.write.number(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(PipeLines, HandsOnWholeLinesAndCompletesTheLastOne) {
  auto pipe = make_pipe();
  std::vector<std::string> taken;
  PipeLines lines(std::move(pipe.read), [&](std::string_view text) { taken.emplace_back(text); });
  write_to(pipe, "one\ntwo\nthr");
  lines.read_available();
  EXPECT_EQ(taken, std::vector<std::string>({"one\ntwo\n"}));
  write_to(pipe, "ee\n\nfour");
  lines.read_available();
  EXPECT_EQ(taken.back(), "three\n\n");
  lines.finish();  // although the pipe is still open for writing
  EXPECT_EQ(taken.back(), "four\n");
  EXPECT_EQ(lines.descriptor(), -1);
}

TEST(PipeLines, WithoutASinkCollectsTheText) {
  auto pipe = make_pipe();
  PipeLines lines(std::move(pipe.read));
  write_to(pipe, "a\nb");
  lines.read_available();
  lines.finish();
  EXPECT_EQ(lines.text(), "a\nb");
}

TEST(PipeLines, KnowsWhenAllWritersAreGone) {
  auto pipe = make_pipe();
  PipeLines lines(std::move(pipe.read));
  lines.read_available();
  EXPECT_GE(lines.descriptor(), 0);
  pipe.write.reset();
  lines.read_available();
  EXPECT_EQ(lines.descriptor(), -1);
}

TEST(PipeLines, DoNotKeepALineThatNeverEnds) {
  auto pipe = make_pipe();
  std::size_t num_taken = 0;
  PipeLines lines(std::move(pipe.read), [&](std::string_view text) { num_taken += text.size(); });
  const std::string part(32768, 'x');
  for (int i = 0; i < 40; ++i) {
    write_to(pipe, part);
    lines.read_available();
  }
  EXPECT_GT(num_taken, std::size_t{1} << 20);
  EXPECT_LT(lines.text().size(), std::size_t{1} << 20);
}

TEST(PipeLines, LabelsEachLineOnce) {
  EXPECT_EQ(with_label("[rank 1] ", "a\n\nb\n"), "[rank 1] a\n[rank 1] \n[rank 1] b\n");
  EXPECT_EQ(with_label("> ", ""), "");
  EXPECT_EQ(without_label("> ", "> a\nb > \n> > c\n"), "a\nb > \n> c\n");
}

}  // namespace
}  // namespace lockstep::launch
