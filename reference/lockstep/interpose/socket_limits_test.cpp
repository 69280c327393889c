#include "lockstep/interpose/socket_limits.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace lockstep::interpose {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A program that holds a port and never says anything.
class Mute {
 public:
  Mute() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_, 8), 0);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~Mute() { close(socket_); }
  Mute(const Mute&) = delete;
  Mute& operator=(const Mute&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

c10d::TCPStoreOptions options(std::uint16_t port, bool is_server, milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = is_server;
  options.waitWorkers = false;
  options.timeout = timeout;
  return options;
}

TEST(SocketLimits, AStoreThatConnectsToAStrangerIsFreed) {
  const Mute mute;
  std::atomic<bool> is_over{false};
  std::thread watch([&] {
    std::this_thread::sleep_for(milliseconds(500));
    while (!is_over) {
      shut_down_connections_to(mute.port());
      std::this_thread::sleep_for(milliseconds(50));
    }
  });
  const auto begin = steady_clock::now();
  EXPECT_ANY_THROW(c10d::TCPStore("127.0.0.1", options(mute.port(), false, milliseconds(400))));
  is_over = true;
  watch.join();
  EXPECT_GE(steady_clock::now() - begin, milliseconds(400));
  EXPECT_LT(steady_clock::now() - begin, milliseconds(5000));
}

TEST(SocketLimits, AStoreWhoseWaitsAreLongerThanTheLimitStillWaits) {
  c10d::TCPStore server("127.0.0.1", options(0, true, milliseconds(3000)));
  c10d::TCPStore client("127.0.0.1", options(server.getPort(), false, milliseconds(3000)));
  limit_answers_from(server.getPort(), milliseconds(100));
  std::thread later([&server] {
    std::this_thread::sleep_for(milliseconds(400));
    server.set("key", std::vector<std::uint8_t>{1});
  });
  EXPECT_EQ(client.get("key"), (std::vector<std::uint8_t>{1}));
  later.join();
  shut_down_connections_to(server.getPort());
  EXPECT_ANY_THROW(client.get("key"));
}

TEST(SocketLimits, AnAnswerThatDoesNotComeIsAnError) {
  const Mute mute;
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(mute.port());
  ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  limit_answers_from(mute.port(), milliseconds(100));
  char byte = 0;
  ssize_t count = 0;
  do count = recv(client, &byte, 1, 0);
  while (count < 0 && errno == EINTR);
  EXPECT_EQ(count, -1);
  EXPECT_EQ(errno, EAGAIN);
  close(client);
}

}  // namespace
}  // namespace lockstep::interpose
