#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/accounting/account.h"
#include "lockstep/base/export.h"
#include "lockstep/base/world.h"
#include "lockstep/comm/failure_board.h"
#include "lockstep/comm/reduce_op.h"
#include "lockstep/comm/store.h"
#include "lockstep/comm/work.h"

namespace c10d {
class ProcessGroup;
}

namespace lockstep::comm {

struct GroupContext;

struct GroupOptions {
  std::string backend = "gloo";  ///< a name of the table of backends, or the path of a plug-in (backends.h)
  std::string name = "world";
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  std::string network_interface;  ///< for Gloo, for example "lo"; empty: the one that the host name resolves to
  std::string plugin_options;  ///< JSON object for a backend that is a plug-in, such as the checked one; may be empty
  bool debug = false;          ///< operations on Values compare shapes over all ranks first (operations.h)
};

/// Names a member of a group: by its rank in the world (`global`, as PyTorch's `src` and `dst`), or by its rank within
/// the group (`group`, as PyTorch's `group_src` and `group_dst`).
struct Member {
  static Member global(int rank) { return {rank, true}; }
  static Member group(int rank) { return {rank, false}; }

  int rank = 0;
  bool is_global = true;
};

struct AllReduceOptions {
  ReduceOp op = ReduceOp::sum;
};
struct ReduceOptions {
  Member root = Member::global(0);
  ReduceOp op = ReduceOp::sum;
};
struct RootOptions {
  Member root = Member::global(0);
};
struct ReduceScatterOptions {
  ReduceOp op = ReduceOp::sum;
};
struct PointToPointOptions {
  int tag = 0;
};
struct AllToAllOptions {
  std::vector<std::int64_t> output_splits;  ///< rows from each rank; empty: even
  std::vector<std::int64_t> input_splits;   ///< rows to each rank; empty: even
};

/// A group of ranks, and this process's place in it. Cheap to copy: copies are the same group.
///
/// A call posts its part and returns; `wait()` on the returned Work blocks until all members have done theirs. All
/// members must make the same calls in the same order. What the backend cannot do for a dtype is refused before
/// anything is sent, on all ranks alike (NotSupported naming operation and dtype). Calls are counted in the rank's
/// account.
class LOCKSTEP_API ProcessGroup {
 public:
  /// No group: as what `new_group` gives those who are not in it.
  ProcessGroup() = default;

  /// Makes this rank's end of a group; blocks until all members are there.
  /// @param store    shared by the members; keys get the group's name as their prefix
  /// @param ranks    global ranks of the members in group order
  /// @param failures  where failing ranks tell each other; none: errors are the backend's own
  static ProcessGroup create(const Store& store, std::vector<int> ranks, int global_rank, const GroupOptions& options,
                             std::shared_ptr<accounting::Account> account, std::shared_ptr<FailureBoard> failures);

  /// A group of some of this group's members. All members of this group must call it, in the same order.
  /// @param ranks  global ranks in the order that the new group counts them
  /// @return no group on ranks that are not among them
  [[nodiscard]] ProcessGroup new_group(const std::vector<int>& ranks, const std::string& name = "",
                                       std::optional<std::string> backend = {}) const;

  /// The same group, over the same connections, whose operations on Values compare shapes first, or do not.
  [[nodiscard]] ProcessGroup with_debug(bool on) const;

  explicit operator bool() const noexcept { return context_ != nullptr; }
  [[nodiscard]] World world() const;  ///< this rank within the group
  [[nodiscard]] int rank() const { return world().rank; }
  [[nodiscard]] int size() const { return world().size; }
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const std::string& backend() const;
  [[nodiscard]] const std::vector<int>& ranks() const;  ///< global ranks of the members
  [[nodiscard]] std::chrono::milliseconds timeout() const;
  [[nodiscard]] bool debug() const;
  /// The rank within the group. @throws InvalidArgument when it is no member
  [[nodiscard]] int group_rank(Member member) const;
  [[nodiscard]] accounting::Account& account() const;

  /// In place, on all ranks. @param tensor  equal shapes and dtypes on all ranks
  Work all_reduce(const at::Tensor& tensor, const AllReduceOptions& options = {}) const;
  Work all_reduce_coalesced(const std::vector<at::Tensor>& tensors, const AllReduceOptions& options = {}) const;
  /// In place; `tensor` is sparse.
  Work all_reduce_sparse(const at::Tensor& tensor) const;
  /// In place, on the root; on the others the tensor stays as it is.
  Work reduce(const at::Tensor& tensor, const ReduceOptions& options = {}) const;
  /// In place, on all but the root.
  Work broadcast(const at::Tensor& tensor, const RootOptions& options = {}) const;
  /// @param output  size() times the input's elements
  Work all_gather(const at::Tensor& output, const at::Tensor& input) const;
  /// @param outputs  size() tensors of the input's shape
  Work all_gather(const std::vector<at::Tensor>& outputs, const at::Tensor& input) const;
  /// @param outputs  one list per rank, each with a tensor per input
  Work all_gather_coalesced(const std::vector<std::vector<at::Tensor>>& outputs,
                            const std::vector<at::Tensor>& inputs) const;
  /// @param outputs  on the root size() tensors of the input's shape, elsewhere empty
  Work gather(const std::vector<at::Tensor>& outputs, const at::Tensor& input, const RootOptions& options = {}) const;
  /// @param inputs  on the root size() tensors of the output's shape, elsewhere empty
  Work scatter(const at::Tensor& output, const std::vector<at::Tensor>& inputs, const RootOptions& options = {}) const;
  /// @param input  size() times the output's elements
  Work reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                      const ReduceScatterOptions& options = {}) const;
  /// @param inputs  one tensor per rank, of the shape of that rank's output; the shapes may differ between ranks
  Work reduce_scatter(const at::Tensor& output, const std::vector<at::Tensor>& inputs,
                      const ReduceScatterOptions& options = {}) const;
  Work reduce_scatter_coalesced(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                                const ReduceScatterOptions& options = {}) const;
  Work all_to_all(const at::Tensor& output, const at::Tensor& input, const AllToAllOptions& options = {}) const;
  Work send(const at::Tensor& tensor, Member to, const PointToPointOptions& options = {}) const;
  Work receive(const at::Tensor& tensor, Member from, const PointToPointOptions& options = {}) const;
  Work receive_from_any(const at::Tensor& tensor, const PointToPointOptions& options = {}) const;
  Work barrier() const;
  /// A barrier that rank 0 watches: it throws with the list of ranks that did not come within the time.
  void monitored_barrier(std::chrono::milliseconds timeout, bool wait_all_ranks = false) const;

  /// Names the parameters in a tensor, for the event stream and reports. @param divisor  of the reduced sum; 0: none
  void label(const at::Tensor& tensor, std::vector<std::string> names, int divisor = 0) const;
  /// The label of `labelled`, if it has one, for a copy that travels in its place.
  void label_as(const at::Tensor& copy, const at::Tensor& labelled) const;
  void unlabel(const void* data) const;

  /// Runs `call` and, if it throws a network error, rethrows it as RankLost or Timeout with the rank behind it. For
  /// calls that communicate without a Work of ours at hand: autograd, whose reducer waits on futures.
  void explain_failures(const std::string& operation, const std::function<void()>& call) const;

  /// Closes this rank's connections, so that the others' waits fail at once.
  void abort() const;

  /// c10d's own group over the same backend, for c10d::Reducer.
  [[nodiscard]] const c10::intrusive_ptr<c10d::ProcessGroup>& handle() const;

 private:
  struct Ends;
  const Ends& ends(const char* operation) const;  // throws on a rank that is no member

  std::shared_ptr<GroupContext> context_;
  std::shared_ptr<Ends> ends_;
};

}  // namespace lockstep::comm
