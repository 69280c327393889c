#include "lockstep/comm/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "lockstep/base/duration.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/watcher.h"
#include "lockstep/interpose/socket_limits.h"

namespace lockstep::comm {

using std::chrono::milliseconds;

struct Store::Impl {
  c10::intrusive_ptr<c10d::Store> store;
  int port = 0;  ///< of the server that answers, in another process perhaps; 0: none

  /// One question to the store. After one that was not answered the connection is closed, since a late answer would be
  /// taken for that of the next question.
  template <typename Question>
  auto ask(const Question& question) const {
    try {
      return question(*store);
    } catch (const std::exception&) {
      if (port != 0) interpose::shut_down_connections_to(port);
      throw;
    }
  }
};

namespace {

std::vector<std::uint8_t> to_bytes(const std::string& text) { return {text.begin(), text.end()}; }
std::string to_string(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

bool contains(const std::exception& error, std::string_view word) {
  return std::string_view(error.what()).find(word) != std::string_view::npos;
}

// Keys by which ranks meet and tell each other of failures; waiting for one is no step of the user's program.
bool is_internal(const std::vector<std::string>& keys) { return keys.front().starts_with("lockstep/"); }

// How long a server may take to answer a question that needs no waiting.
constexpr milliseconds kAnswer = std::chrono::seconds(10);

/// While it lives, and once the time is over, whoever waits for an answer from `port` gets an error instead: connecting
/// to a program that is no store, or stands still, ends too.
class Deadline {
 public:
  Deadline(int port, milliseconds timeout) : watch_([this, port, timeout] { watch(port, timeout); }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    watch_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  void watch(int port, milliseconds timeout) {
    constexpr auto kAgain = milliseconds(50);  // c10d tries once more
    std::unique_lock lock(mutex_);
    for (auto pause = timeout; !changed_.wait_for(lock, pause, [this] { return is_over_; }); pause = kAgain) {
      interpose::shut_down_connections_to(port);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread watch_;  // last: it uses the others
};

c10::intrusive_ptr<c10d::TCPStore> connect(const std::string& host, int port, bool is_server, milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.isServer = is_server;
  options.waitWorkers = false;  // waiting for the ranks is done by us, where it can be interrupted
  options.timeout = timeout;
  try {
    const Deadline deadline(port, timeout);
    auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
    interpose::limit_answers_from(store->getPort(), std::min(timeout, kAnswer));
    return store;
  } catch (const std::exception& error) {
    if (is_server && (contains(error, "EADDRINUSE") || contains(error, "in use"))) {
      throw RuntimeError({.where = "rendezvous",
                          .expected = fmt::format("to listen on port {} as rank 0", port),
                          .got = "the port is in use",
                          .fix = "Set MASTER_PORT to a free port on every rank, or end the program that holds it."});
    }
    if (is_server) {
      throw RuntimeError({.where = "rendezvous",
                          .expected = fmt::format("to listen on {}:{} as rank 0", host, port),
                          .got = brief(error),
                          .fix = "Set MASTER_ADDR to an address of this machine."});
    }
    throw Timeout({.where = "rendezvous",
                   .expected = fmt::format("rank 0 to answer at {}:{} within {} s", host, port, seconds_of(timeout)),
                   .got = brief(error),
                   .fix = "Start rank 0, and give every rank its MASTER_ADDR and MASTER_PORT."});
  }
}

}  // namespace

Store Store::tcp(const std::string& host, int port, bool is_server, milliseconds timeout) {
  if (port < 0 || port > 65535 || (port == 0 && !is_server)) {
    throw InvalidArgument({.where = "rendezvous",
                           .expected = "a port from 1 to 65535 that all ranks know",
                           .got = fmt::format("port {}", port),
                           .fix = "Set MASTER_PORT to the port at which rank 0 listens."});
  }
  auto tcp = connect(host, port, is_server, timeout);
  const int actual_port = tcp->getPort();
  Store store(std::make_shared<Impl>(Impl{std::move(tcp), actual_port}), timeout);
  store.is_server_ = is_server;
  store.port_ = actual_port;
  return store;
}

Store Store::file(const std::string& path, int world_size, milliseconds timeout) {
  Store store(std::make_shared<Impl>(Impl{c10::make_intrusive<c10d::FileStore>(path, world_size)}), timeout);
  store.set_timeout(timeout);
  return store;
}

Store Store::hash(milliseconds timeout) {
  Store store(std::make_shared<Impl>(Impl{c10::make_intrusive<c10d::HashStore>()}), timeout);
  store.set_timeout(timeout);
  return store;
}

Store Store::with_prefix(const std::string& prefix) const {
  Store copy(*this);
  copy.impl_ = std::make_shared<Impl>(Impl{c10::make_intrusive<c10d::PrefixStore>(prefix, impl_->store), port_});
  return copy;
}

void Store::set_timeout(milliseconds timeout) {
  timeout_ = timeout;
  impl_->store->setTimeout(timeout);
}

const c10::intrusive_ptr<c10d::Store>& Store::handle() const noexcept { return impl_->store; }

void Store::set(const std::string& key, const std::string& value) {
  impl_->ask([&](c10d::Store& store) { store.set(key, to_bytes(value)); });
}

std::string Store::set_if_absent(const std::string& key, const std::string& value) {
  return to_string(impl_->ask([&](c10d::Store& store) { return store.compareSet(key, {}, to_bytes(value)); }));
}

std::int64_t Store::add(const std::string& key, std::int64_t amount) {
  return impl_->ask([&](c10d::Store& store) { return store.add(key, amount); });
}

bool Store::erase(const std::string& key) {
  return has(key) && impl_->ask([&](c10d::Store& store) { return store.deleteKey(key); });
}

bool Store::has(const std::string& key) const {
  return impl_->ask([&](c10d::Store& store) { return store.check({key}); });
}

std::optional<std::string> Store::find(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  return to_string(impl_->ask([&](c10d::Store& store) { return store.get(key); }));
}

void Store::wait(const std::vector<std::string>& keys, milliseconds timeout, const Interrupt& interrupt) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  auto pause = milliseconds(1);
  std::vector<std::string> missing = keys;
  std::optional<WatchedKeyWait> watched;
  while (true) {
    std::erase_if(missing, [this](const std::string& key) { return has(key); });
    if (missing.empty()) return;
    // One that is shorter than the store's own time-out is about to go on by itself, and the caller is ready for that.
    if (!watched && !is_internal(missing) && timeout >= timeout_)
      watched.emplace(fmt::format("{}", fmt::join(missing, ", ")));
    throw_verdict();
    if (interrupt) interrupt();
    if (std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, milliseconds(20));  // short at first, since peers mostly arrive together
  }
  throw Timeout({.where = "store",
                 .expected = fmt::format("the keys {} within {} s", fmt::join(keys, ", "), seconds_of(timeout)),
                 .got = fmt::format("no sign of {}", fmt::join(missing, ", "))});
}

std::string Store::get(const std::string& key, const Interrupt& interrupt) const {
  wait({key}, timeout_, interrupt);
  return to_string(impl_->ask([&](c10d::Store& store) { return store.get(key); }));
}

}  // namespace lockstep::comm
