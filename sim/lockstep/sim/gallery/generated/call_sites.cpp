#include "lockstep/sim/gallery/generated/call_sites.h"

#include <array>

namespace lockstep::sim::generated {
namespace {

// One call site. The statement without effect at its end comes after the call, which so is no tail call that would
// leave no frame behind; and its number makes each function differ from the others, which could else be folded into
// one.
#define LOCKSTEP_CALL_SITE(number)                                                                                  \
  [[gnu::noinline]] void call_at_##number(PreparedCall& call) {                                                     \
    const auto& group = call.group;                                                                                 \
    switch (call.action) {                                                                                          \
      case Action::all_reduce: call.keep(group.all_reduce(call.tensor, call.reduction)); break;                     \
      case Action::broadcast: call.keep(group.broadcast(call.tensor, call.root)); break;                            \
      case Action::all_gather: call.keep(group.all_gather(call.whole, call.tensor)); break;                         \
      case Action::reduce_scatter: call.keep(group.reduce_scatter(call.tensor, call.whole, call.scattered)); break; \
      case Action::all_to_all: call.keep(group.all_to_all(call.result, call.whole, call.splits)); break;            \
      case Action::gather: call.keep(group.gather(call.parts, call.tensor, call.root)); break;                      \
      case Action::scatter: call.keep(group.scatter(call.tensor, call.parts, call.root)); break;                    \
      case Action::reduce: call.keep(group.reduce(call.tensor, call.rooted)); break;                                \
      case Action::barrier: call.keep(group.barrier()); break;                                                      \
      case Action::send: call.keep(group.send(call.tensor, call.peer, call.tagged)); break;                         \
      case Action::receive: call.keep(group.receive(call.tensor, call.peer, call.tagged)); break;                   \
      case Action::wait: call.awaited->wait(); break;                                                               \
      case Action::store_set: call.store->set(call.key, call.value); break;                                         \
      case Action::store_wait: call.store->wait(call.keys, call.timeout, call.interrupt); break;                    \
      default: break;                                                                                               \
    }                                                                                                               \
    asm volatile("" : : "i"(1##number));                                                                            \
  }

// Uses a macro once for every number, 000 to 249.
// clang-format off
#define LOCKSTEP_TEN(use, tens)                                    \
  use(tens##0) use(tens##1) use(tens##2) use(tens##3) use(tens##4) \
  use(tens##5) use(tens##6) use(tens##7) use(tens##8) use(tens##9)
#define LOCKSTEP_ALL(use)                                                                                       \
  LOCKSTEP_TEN(use, 00) LOCKSTEP_TEN(use, 01) LOCKSTEP_TEN(use, 02) LOCKSTEP_TEN(use, 03) LOCKSTEP_TEN(use, 04) \
  LOCKSTEP_TEN(use, 05) LOCKSTEP_TEN(use, 06) LOCKSTEP_TEN(use, 07) LOCKSTEP_TEN(use, 08) LOCKSTEP_TEN(use, 09) \
  LOCKSTEP_TEN(use, 10) LOCKSTEP_TEN(use, 11) LOCKSTEP_TEN(use, 12) LOCKSTEP_TEN(use, 13) LOCKSTEP_TEN(use, 14) \
  LOCKSTEP_TEN(use, 15) LOCKSTEP_TEN(use, 16) LOCKSTEP_TEN(use, 17) LOCKSTEP_TEN(use, 18) LOCKSTEP_TEN(use, 19) \
  LOCKSTEP_TEN(use, 20) LOCKSTEP_TEN(use, 21) LOCKSTEP_TEN(use, 22) LOCKSTEP_TEN(use, 23) LOCKSTEP_TEN(use, 24)
// clang-format on

LOCKSTEP_ALL(LOCKSTEP_CALL_SITE)

#define LOCKSTEP_NAME(number) call_at_##number,
using CallSite = void (*)(PreparedCall&);
constexpr std::array<CallSite, kMaxLines> kCallSites = {LOCKSTEP_ALL(LOCKSTEP_NAME)};

}  // namespace

void make_call_at(int line, PreparedCall& call) { kCallSites.at(static_cast<std::size_t>(line))(call); }

}  // namespace lockstep::sim::generated
