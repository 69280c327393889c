#pragma once

#include <memory>
#include <string>

#include "lockstep/comm/forwarding_backend.h"
#include "lockstep/comm/group_context.h"
#include "lockstep/comm/stand_ins.h"
#include "lockstep/comm/watcher.h"

namespace lockstep::comm {

/// Wraps a backend's work, so that a wait that fails says which rank is behind it (FailureBoard::explain), and one that
/// succeeds leaves the result in the caller's tensors (StandIns::land).
class TrackedWork final : public ForwardingWork {
 public:
  TrackedWork(c10::intrusive_ptr<c10d::Work> inner, std::shared_ptr<StandIns> stand_ins,
              std::shared_ptr<const GroupContext> group, const char* operation, std::uint64_t sequence);

  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return sequence_; }

 private:
  std::shared_ptr<StandIns> stand_ins_;
  std::shared_ptr<const GroupContext> group_;
  const char* operation_;
  std::uint64_t sequence_;
};

/// Whether the network is behind an error. LibTorch's own complaints about arguments are c10::Error; what Gloo throws
/// is not, and what waits throw tells by its words.
bool comes_from_network(const std::exception& error);

/// Runs `call`; if it throws a network error, explains it as the failure of `operation` (looks for a second whether a
/// peer is behind it). Other errors go through as they are.
template <typename Call>
auto explained(const GroupContext& group, const std::string& operation, Call&& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const bool is_network = comes_from_network(error);
    if (is_network) await_verdict();
    throw_verdict();  // a watcher that has one knows more
    if (!group.failures || !is_network) throw;
    group.failures->explain(error, operation, group.account->stamp().step, group.ranks);
  }
}

/// Posts a call. An error of LibTorch's here is about this rank's own arguments, before anything was sent; c10d's
/// network errors, and anything else, are explained.
template <typename Post>
auto posted(const GroupContext& group, const std::string& operation, Post&& post) {
  return explained(group, operation, [&] {
    try {
      return post();
    } catch (const c10::DistError&) {
      throw;  // also a verdict, which explained() turns into its own error
    } catch (const c10::Error& error) {
      const auto text = brief(error);
      // What a backend does not override, c10d::Backend refuses in these words.
      if (dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr ||
          text.find("does not support") != std::string::npos || text.find("does not implement") != std::string::npos) {
        throw NotSupported({.where = operation, .got = text});
      }
      throw InvalidArgument({.where = operation, .got = text});
    }
  });
}

}  // namespace lockstep::comm
