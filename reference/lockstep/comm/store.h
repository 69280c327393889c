#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/base/world.h"

namespace c10d {
class Store;
}

namespace lockstep::comm {

/// The key-value store at which ranks meet, over one of c10d's (TCP, file or hash). Cheap to copy: copies share it.
///
/// Waiting is done here and not in c10d, in short turns, so that an `Interrupt` can end it: a rank that waits for a
/// peer at rendezvous learns within milliseconds that the peer has failed, instead of sitting out the time-out.
class LOCKSTEP_API Store {
 public:
  /// Called between two looks at the store; throws to end the wait.
  using Interrupt = std::function<void()>;

  /// Connects to host:port; with `is_server` this process hosts the store there (port 0: any free one, see port()).
  /// @throws RuntimeError  when the port is in use, naming it
  /// @throws Timeout       when no server answers in time
  static Store tcp(const std::string& host, int port, bool is_server, std::chrono::milliseconds timeout);
  /// A store in the file `path`, for ranks of one machine.
  static Store file(const std::string& path, int world_size, std::chrono::milliseconds timeout);
  /// A store in memory, for ranks that are threads of one process.
  static Store hash(std::chrono::milliseconds timeout);

  /// The same store with `prefix/` before every key.
  [[nodiscard]] Store with_prefix(const std::string& prefix) const;

  void set(const std::string& key, const std::string& value);
  /// Sets the key if nobody has; returns the value that is there afterwards.
  std::string set_if_absent(const std::string& key, const std::string& value);
  /// Adds to a counter and returns its new value.
  std::int64_t add(const std::string& key, std::int64_t amount);
  /// @return whether the key was there
  bool erase(const std::string& key);
  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] std::optional<std::string> find(const std::string& key) const;

  /// Waits until all keys are there. @throws Timeout naming the keys that are missing
  void wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout,
            const Interrupt& interrupt = {}) const;
  /// Waits for the key and returns its value.
  [[nodiscard]] std::string get(const std::string& key, const Interrupt& interrupt = {}) const;

  [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return timeout_; }
  void set_timeout(std::chrono::milliseconds timeout);
  [[nodiscard]] bool is_server() const noexcept { return is_server_; }
  /// The port that a TCP store listens on or is connected to; 0 for the others.
  [[nodiscard]] int port() const noexcept { return port_; }

  /// For backends, which want c10d's own.
  [[nodiscard]] const c10::intrusive_ptr<c10d::Store>& handle() const noexcept;

 private:
  struct Impl;
  Store(std::shared_ptr<Impl> impl, std::chrono::milliseconds timeout) : impl_(std::move(impl)), timeout_(timeout) {}

  std::shared_ptr<Impl> impl_;
  std::chrono::milliseconds timeout_;
  bool is_server_ = false;
  int port_ = 0;
};

}  // namespace lockstep::comm
