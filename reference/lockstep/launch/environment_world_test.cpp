// Ranks that no launcher of ours watches: programs that find each other by RANK, WORLD_SIZE and MASTER_*, as under
// torchrun or in a user's own script. Whatever goes wrong, each of them ends within the time-out and says what, and
// about which rank.
//
// A rank is the program environment_rank.cpp.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/state/environment.h"

namespace lockstep::launch {
namespace {

using state::Environment;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// -- Starting ranks
// ------------------------------------------------------------------------------------------------------

struct Ended {
  int status = 0;
  std::string output;
  milliseconds after{0};  ///< its start

  [[nodiscard]] bool is_well() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

testing::AssertionResult says(const Ended& rank, const std::string& part) {
  if (rank.output.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no '" << part << "' in: " << rank.output;
}

/// A rank's process; killed at the latest when its object goes.
class RankProgram {
 public:
  RankProgram(const std::string& work, const Environment& environment) : begin_(steady_clock::now()) {
    std::array<int, 2> pipe{};
    LOCKSTEP_ASSERT(pipe2(pipe.data(), O_CLOEXEC) == 0);
    output_ = pipe[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
    std::vector<std::string> arguments = {ENVIRONMENT_RANK, work};
    std::vector<std::string> variables;
    for (const auto& [name, value] : environment.variables()) variables.push_back(name + "=" + value);
    const auto argv = pointers(arguments);
    const auto envp = pointers(variables);
    LOCKSTEP_ASSERT(posix_spawn(&pid_, ENVIRONMENT_RANK, &actions, nullptr, argv.data(), envp.data()) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe[1]);
  }
  ~RankProgram() {
    close(output_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  RankProgram(RankProgram&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), output_(std::exchange(other.output_, -1)), begin_(other.begin_) {}
  RankProgram(const RankProgram&) = delete;

  /// Waits for its end, but no longer than `limit` from its start; then it is a failure of the test, and killed.
  Ended end(milliseconds limit) {
    Ended ended;
    while (waitpid(pid_, &ended.status, WNOHANG) == 0) {
      if (steady_clock::now() - begin_ > limit) {
        ADD_FAILURE() << "hangs for more than " << limit.count() << " ms";
        kill(pid_, SIGKILL);
        waitpid(pid_, &ended.status, 0);
        break;
      }
      std::this_thread::sleep_for(milliseconds(5));
    }
    pid_ = 0;
    ended.after = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin_);
    std::array<char, 4096> buffer{};
    for (ssize_t count = 0; (count = read(output_, buffer.data(), buffer.size())) > 0;) {
      ended.output.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return ended;
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> result;
    for (auto& string : strings) result.push_back(string.data());
    result.push_back(nullptr);
    return result;
  }

  pid_t pid_ = 0;
  int output_ = -1;
  steady_clock::time_point begin_;
};

/// A socket that listens on a port of its own.
class Listener {
 public:
  Listener() : socket_(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    socklen_t size = sizeof address;
    LOCKSTEP_ASSERT(bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(socket_, 8) == 0);
    LOCKSTEP_ASSERT(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin6_port);
  }
  ~Listener() { close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] int port() const { return port_; }

 private:
  int socket_;
  int port_ = 0;
};

int free_port() { return Listener().port(); }

constexpr milliseconds kTimeout = seconds(2);
// Start of the program, search for the reason (1 s), a slow machine.
constexpr milliseconds kSlack = seconds(6);

Environment environment_of(int rank, int size, int port) {
  auto environment = Environment::of_process();
  environment.set("RANK", std::to_string(rank));
  environment.set("LOCAL_RANK", std::to_string(rank));
  environment.set("WORLD_SIZE", std::to_string(size));
  environment.set("LOCAL_WORLD_SIZE", std::to_string(size));
  environment.set("MASTER_ADDR", "127.0.0.1");
  environment.set("MASTER_PORT", std::to_string(port));
  environment.set("ACCELERATE_USE_CPU", "1");
  environment.set("GLOO_SOCKET_IFNAME", "lo");
  environment.set("OMP_NUM_THREADS", "1");
  environment.set("LOCKSTEP_TIMEOUT", std::to_string(kTimeout.count() / 1000));
  environment.set("FAILING_RANK", "-1");
  return environment;
}

class EnvironmentWorld : public testing::Test {
 protected:
  EnvironmentWorld() {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
  }

  /// Both ranks of a world of two, of which `failing` fails by `work`; how they ended, by rank.
  static std::vector<Ended> run_two(const std::string& work, int failing, milliseconds limit) {
    const int port = free_port();
    std::vector<RankProgram> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      auto environment = environment_of(rank, 2, port);
      environment.set("FAILING_RANK", std::to_string(failing));
      ranks.emplace_back(work, environment);
    }
    std::vector<Ended> ended(2);
    for (const int rank : {1 - failing, failing}) {
      if (rank == failing && work == "is_stopped") break;  // goes with its object
      ended[static_cast<std::size_t>(rank)] = ranks[static_cast<std::size_t>(rank)].end(limit);
    }
    return ended;
  }
};

TEST_F(EnvironmentWorld, RanksMeetWorkAndEndWithoutDelay) {
  const auto ended = run_two("works", /*failing=*/0, seconds(10));
  for (const auto& rank : ended) {
    EXPECT_TRUE(rank.is_well()) << rank.output;
    EXPECT_LT(rank.after, seconds(4));  // rank 0 hosts the store, and waits for nobody who is well
  }
}

TEST_F(EnvironmentWorld, ARankThatEndsWellDoesNotHarmTheOthers) {
  for (const int first : {0, 1}) {
    for (const auto& rank : run_two("ends_first", first, seconds(10))) EXPECT_TRUE(rank.is_well()) << rank.output;
  }
}

// -- Bad input
// -----------------------------------------------------------------------------------------------------------

TEST_F(EnvironmentWorld, AWorldOfZeroIsRefusedAtOnce) {
  const auto ended = RankProgram("works", environment_of(0, 0, free_port())).end(seconds(10));
  EXPECT_FALSE(ended.is_well());
  EXPECT_TRUE(says(ended, "expected a world size of at least 1, got world size 0"));
  EXPECT_TRUE(says(ended, "Set WORLD_SIZE"));
}

TEST_F(EnvironmentWorld, ARankOutsideTheWorldIsRefusedAtOnce) {
  const auto ended = RankProgram("works", environment_of(2, 2, free_port())).end(seconds(10));
  EXPECT_FALSE(ended.is_well());
  EXPECT_TRUE(says(ended, "expected a rank from 0 to 1, got rank 2 in a world of 2"));
  EXPECT_TRUE(says(ended, "RANK"));
}

TEST_F(EnvironmentWorld, AWorldWithoutARankIsRefusedAtOnce) {
  const auto ended = RankProgram("works", environment_of(-1, 2, free_port())).end(seconds(10));
  EXPECT_FALSE(ended.is_well());
  EXPECT_TRUE(says(ended, "expected a rank in a world of 2, got none"));
}

TEST_F(EnvironmentWorld, ARankWithoutAWorldIsRefusedAtOnce) {
  auto environment = environment_of(1, 2, free_port());
  for (const char* name : {"WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) environment.unset(name);
  const auto ended = RankProgram("works", environment).end(seconds(10));
  EXPECT_FALSE(ended.is_well());
  EXPECT_TRUE(says(ended, "got rank 1 and no world size"));
}

TEST_F(EnvironmentWorld, APortInUseIsNamed) {
  const Listener listener;
  RankProgram rank_0("works", environment_of(0, 2, listener.port()));
  RankProgram rank_1("works", environment_of(1, 2, listener.port()));
  const auto ended = rank_0.end(seconds(10));
  EXPECT_FALSE(ended.is_well());
  EXPECT_TRUE(says(ended, "port " + std::to_string(listener.port())));
  EXPECT_TRUE(says(ended, "the port is in use"));
  EXPECT_TRUE(says(ended, "MASTER_PORT"));
  const auto other = rank_1.end(kTimeout + kSlack);  // speaks to a stranger, who does not answer
  EXPECT_FALSE(other.is_well());
  EXPECT_TRUE(says(other, "rank 0 to answer at 127.0.0.1:" + std::to_string(listener.port())));
}

// Cases N5 and L7 of the field's failures: the limit holds at the start too, and says who is missing.
TEST_F(EnvironmentWorld, ARankThatIsNeverStartedIsNamedWhenTheTimeIsOver) {
  RankProgram alone("works", environment_of(0, 2, free_port()));
  RankProgram without_host("works", environment_of(1, 2, free_port()));
  const auto ended = alone.end(kTimeout + kSlack);
  EXPECT_FALSE(ended.is_well());
  EXPECT_GE(ended.after, kTimeout);
  EXPECT_TRUE(says(ended, "1 of 2: rank 1 never arrived"));
  const auto other = without_host.end(kTimeout + kSlack);
  EXPECT_FALSE(other.is_well());
  EXPECT_GE(other.after, kTimeout);
  EXPECT_TRUE(says(other, "rank 0 to answer"));
}

TEST_F(EnvironmentWorld, TwoProcessesWithOneRankAreToldSoAndTheOthersToo) {
  const int port = free_port();
  std::vector<RankProgram> ranks;
  for (const int rank : {1, 1, 0}) ranks.emplace_back("works", environment_of(rank, 3, port));
  int num_refused = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto ended = ranks[i].end(kTimeout + kSlack);
    EXPECT_FALSE(ended.is_well());
    EXPECT_TRUE(says(ended, "two processes with RANK=1"));
    if (i < 2)
      EXPECT_LT(ended.after, kTimeout) << "waited for the time-out";  // rank 0 stays for rank 2, should it be late
    num_refused += says(ended, "was lost") ? 0 : 1;
  }
  EXPECT_EQ(num_refused, 1) << "the others lost a rank";
}

// -- A rank fails
// --------------------------------------------------------------------------------------------------------

class FailingRankOfTheEnvironment : public EnvironmentWorld, public testing::WithParamInterface<int> {
 protected:
  static void expect_the_other_says(const std::vector<Ended>& ended, const std::string& cause) {
    const auto& other = ended[static_cast<std::size_t>(1 - GetParam())];
    EXPECT_FALSE(other.is_well());
    EXPECT_TRUE(says(other, "rank " + std::to_string(GetParam())));
    EXPECT_TRUE(says(other, cause));
  }
  static const Ended& failing(const std::vector<Ended>& ended) { return ended[static_cast<std::size_t>(GetParam())]; }
};

TEST_P(FailingRankOfTheEnvironment, TellsTheOtherWhatItThrew) {
  const auto ended = run_two("throws", GetParam(), kTimeout + kSlack);
  expect_the_other_says(ended, "ValueError: planted");
  EXPECT_TRUE(WIFSIGNALED(failing(ended).status));  // as any program that an exception leaves
  EXPECT_EQ(WTERMSIG(failing(ended).status), SIGABRT);
  EXPECT_TRUE(says(failing(ended), "planted"));
  for (const auto& rank : ended) EXPECT_LT(rank.after, kTimeout) << "waited for the time-out";
}

TEST_P(FailingRankOfTheEnvironment, TellsTheOtherThatItExits) {
  const auto ended = run_two("exits", GetParam(), kTimeout + kSlack);
  expect_the_other_says(ended, "exited with code 3");
  EXPECT_EQ(WEXITSTATUS(failing(ended).status), 3);
  for (const auto& rank : ended) EXPECT_LT(rank.after, kTimeout) << "waited for the time-out";
}

TEST_P(FailingRankOfTheEnvironment, IsFoundGoneWhenASignalEndsIt) {
  const auto ended = run_two("is_killed", GetParam(), kTimeout + kSlack);
  // The checked backend sees the process go; without it the store that goes with rank 0 is what is seen.
  const auto backend = state::Environment::of_process().find("LOCKSTEP_BACKEND").value_or("gloo");
  const bool is_seen = GetParam() != 0 || backend.starts_with("checked");
  expect_the_other_says(ended, is_seen ? "is gone" : "the store that it hosts does not answer");
}

TEST_P(FailingRankOfTheEnvironment, IsNamedWhenItStandsStill) {
  const auto ended = run_two("is_stopped", GetParam(), kTimeout + kSlack);
  expect_the_other_says(ended, GetParam() == 0 ? "store" : "stands still");
}

INSTANTIATE_TEST_SUITE_P(Ranks, FailingRankOfTheEnvironment, testing::Values(0, 1));

}  // namespace
}  // namespace lockstep::launch
