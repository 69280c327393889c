#pragma once

#include <utility>

namespace lockstep::launch {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  void reset() noexcept;
  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// The two ends of a pipe. Both close at exec; reading never waits.
struct Pipe {
  Descriptor read;
  Descriptor write;
};

/// @throws RuntimeError  when this process may open no more
Pipe make_pipe();

}  // namespace lockstep::launch
