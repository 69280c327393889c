#include "lockstep/comm/comm_test_support.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <thread>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

constexpr auto kSource = "a rank";

void join(const TestWorld& world, const Store& store, TestRank& me) {
  if (world.with_failure_board) {
    me.failures = std::make_shared<FailureBoard>(store, World{.rank = me.rank, .size = world.size});
    me.failures->announce();
  }
  std::vector<int> everyone;
  for (int each = 0; each < world.size; ++each) everyone.push_back(each);
  me.group = ProcessGroup::create(
      store, everyone, me.rank,
      {.backend = world.backend, .timeout = world.timeout, .network_interface = world.backend == "gloo" ? "lo" : ""},
      me.account, me.failures);
}

void run_rank(const TestWorld& world, int rank, const Store& store, const std::function<void(TestRank&)>& body) {
  const testing::ScopedTrace trace(kSource, rank, fmt::format("rank {}", rank));
  at::set_num_threads(1);
  TestRank me{.rank = rank,
              .size = world.size,
              .store = store.with_prefix("test"),
              .account = std::make_shared<accounting::Account>(rank)};
  try {
    join(world, store, me);
    body(me);
  } catch (const std::exception& error) {
    ADD_FAILURE() << brief(error);
    if (me.group) me.group.abort();  // so that the others end as well
  }
}

// In a rank's process: assertions that fail are told to the parent.
class TellParent : public testing::EmptyTestEventListener {
 public:
  explicit TellParent(int pipe) : pipe_(pipe) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const auto text = fmt::format("{}:{}: {}\n", result.file_name() == nullptr ? "" : result.file_name(),
                                  result.line_number(), result.message());
    static_cast<void>(!write(pipe_, text.data(), text.size()));
  }

 private:
  int pipe_;
};

void report_to(int pipe) {
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  delete listeners.Release(listeners.default_xml_generator());
  listeners.Append(new TellParent(pipe));
}

std::string read_all(int pipe) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (const auto count = read(pipe, buffer.data(), buffer.size())) {
    if (count < 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

void run_processes(const TestWorld& world, const std::function<void(TestRank&)>& body) {
  const TemporaryFolder folder;
  std::vector<std::unique_ptr<Child>> children;
  std::vector<int> pipes;
  for (int rank = 0; rank < world.size; ++rank) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    children.push_back(std::make_unique<Child>([&] {
      close(ends[0]);
      report_to(ends[1]);
      run_rank(world, rank, Store::file(folder.file("store"), world.size, world.timeout), body);
    }));
    close(ends[1]);
    pipes.push_back(ends[0]);
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    const auto failures = read_all(pipes[rank]);
    close(pipes[rank]);
    if (!failures.empty()) ADD_FAILURE() << "rank " << rank << ":\n" << failures;
    const int status = children[rank]->reap();
    if (std::ranges::find(world.killed, static_cast<int>(rank)) == world.killed.end()) {
      EXPECT_TRUE(WIFEXITED(status)) << "rank " << rank << " was ended by signal " << WTERMSIG(status);
    }
  }
}

void run_threads(const TestWorld& world, const std::function<void(TestRank&)>& body) {
  const auto store = Store::hash(world.timeout);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < world.size; ++rank) {
    ranks.emplace_back([&world, &store, &body, rank] { run_rank(world, rank, store, body); });
  }
  for (auto& rank : ranks) rank.join();
}

}  // namespace

void run_ranks(const TestWorld& world, const std::function<void(TestRank&)>& body) {
  world.backend == "threads" ? run_threads(world, body) : run_processes(world, body);
}

Child::Child(const std::function<void()>& body) : pid_(fork()) {
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  std::fflush(nullptr);
  _exit(0);  // neither destructors nor the parent's exit handlers
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  reap();
}

void Child::signal(int number) const {
  kill(pid_, number);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT);
}

int Child::reap() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  return status;
}

TemporaryFolder::TemporaryFolder() {
  std::string path = std::filesystem::temp_directory_path() / "lockstep-XXXXXX";
  LOCKSTEP_ASSERT(mkdtemp(path.data()) != nullptr);
  path_ = path;
}
TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no '" << part << "' in: " << text;
}

}  // namespace lockstep::comm
