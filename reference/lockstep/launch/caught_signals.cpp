#include "lockstep/launch/caught_signals.h"

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>

namespace lockstep::launch {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// A handler reaches nothing but globals. Atomics of int are lock-free, so it may touch them.
std::atomic<int> first_signal{0};
std::atomic<int> told_socket{-1};

void note(int signal) {
  const int saved = errno;
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  const auto number = static_cast<char>(signal);
  if (const int socket = told_socket; socket >= 0) send(socket, &number, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  errno = saved;
}

}  // namespace

CaughtSignals::CaughtSignals(Afterwards afterwards, int tell) : afterwards_(afterwards) {
  for (const int signal : kSignals) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_DFL) continue;
    if (before_.empty()) {
      first_signal = 0;
      told_socket = tell;
    }
    struct sigaction action {};
    action.sa_handler = note;  // without SA_RESTART: a call that waits returns, so that its caller can look
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
    before_.emplace_back(signal, before);
  }
}

CaughtSignals::~CaughtSignals() {
  if (before_.empty()) return;
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
  told_socket = -1;
  const int signal = first_signal.exchange(0);
  if (signal != 0 && afterwards_ == Afterwards::raise) raise(signal);
}

int CaughtSignals::first() noexcept { return first_signal; }

void CaughtSignals::restore_in_child() noexcept {
  for (const int signal : kSignals) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != note) continue;
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
  first_signal = 0;
  told_socket = -1;
}

}  // namespace lockstep::launch
