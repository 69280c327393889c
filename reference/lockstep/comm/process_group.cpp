#include "lockstep/comm/process_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/accounted_backend.h"
#include "lockstep/comm/backends.h"
#include "lockstep/comm/group_context.h"
#include "lockstep/comm/tracked_work.h"

namespace lockstep::comm {

using Tensors = std::vector<at::Tensor>;

struct ProcessGroup::Ends {
  Store store;  // this group's keys
  std::string network_interface;
  int global_rank = 0;
  c10::intrusive_ptr<AccountedBackend> backend;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::vector<std::weak_ptr<Ends>> subgroups;  // they fail with this group
  int num_subgroups = 0;  // counted alike on all members, so that subgroups get the same default names
};

namespace {

c10d::ReduceOp to_c10d(ReduceOp op) { return static_cast<c10d::ReduceOp::RedOpType>(op); }

c10::intrusive_ptr<c10d::ProcessGroup> as_process_group(const Store& store, World world,
                                                        const c10::intrusive_ptr<AccountedBackend>& backend,
                                                        bool on_cuda) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store.handle(), world.rank, world.size);
  group->setBackend(on_cuda ? at::kCUDA : at::kCPU, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  return group;
}

void require_elements(const char* operation, const at::Tensor& whole, const at::Tensor& part, int size) {
  if (whole.scalar_type() == part.scalar_type() && whole.numel() == part.numel() * size) return;
  throw InvalidArgument(
      {.where = operation,
       .expected = fmt::format("{} elements of {} in the whole, {} for each of {} ranks", part.numel() * size,
                               c10::toString(part.scalar_type()), part.numel(), size),
       .got = fmt::format("{} elements of {}", whole.numel(), c10::toString(whole.scalar_type()))});
}

void require_length(const char* operation, const char* what, std::size_t length, std::size_t expected) {
  if (length == expected) return;
  throw InvalidArgument(
      {.where = operation, .expected = fmt::format("{} {}", expected, what), .got = fmt::format("{}", length)});
}

// Whoever waits for a member that has failed need not wait for the time-out.
Store::Interrupt unless_one_has_failed(const std::shared_ptr<FailureBoard>& failures, const std::string& group) {
  if (!failures) return {};
  return [failures, where = "rendezvous of group " + group] { failures->throw_if_failed(where); };
}

}  // namespace

ProcessGroup ProcessGroup::create(const Store& store, std::vector<int> ranks, int global_rank,
                                  const GroupOptions& options, std::shared_ptr<accounting::Account> account,
                                  std::shared_ptr<FailureBoard> failures) {
  const auto me = std::ranges::find(ranks, global_rank);
  LOCKSTEP_ASSERT(me != ranks.end());
  const World world{.rank = static_cast<int>(me - ranks.begin()), .size = static_cast<int>(ranks.size())};

  ProcessGroup group;
  group.context_ = std::make_shared<GroupContext>();
  auto& context = *group.context_;
  context.name = options.name;
  context.world = world;
  context.ranks = std::move(ranks);
  context.backend = options.backend;
  context.timeout = options.timeout;
  context.plugin_options = options.plugin_options;
  context.debug = options.debug;
  context.account = std::move(account);
  context.failures = std::move(failures);

  auto keys = store.with_prefix(options.name);
  keys.set_timeout(options.timeout);
  auto made = explained(context, "rendezvous of group " + options.name, [&] {
    return make_backend({.name = options.backend,
                         .store = keys,
                         .world = world,
                         .ranks = context.ranks,
                         .group = options.name,
                         .timeout = options.timeout,
                         .network_interface = options.network_interface,
                         .interrupt = unless_one_has_failed(context.failures, options.name),
                         .plugin_options = options.plugin_options});
  });
  auto backend =
      c10::make_intrusive<AccountedBackend>(std::move(made.backend), std::move(made.capabilities), group.context_);
  group.ends_ =
      std::make_shared<Ends>(Ends{.store = keys,
                                  .network_interface = options.network_interface,
                                  .global_rank = global_rank,
                                  .backend = backend,
                                  .group = as_process_group(keys, world, backend, options.backend.ends_with("nccl"))});
  return group;
}

ProcessGroup ProcessGroup::new_group(const std::vector<int>& ranks, const std::string& name,
                                     std::optional<std::string> backend) const {
  const auto& parent = ends("new_group");
  const auto index = ends_->num_subgroups++;
  parent.backend->capabilities().require_groups();
  for (const int rank : ranks) static_cast<void>(group_rank(Member::global(rank)));  // throws when it is no member
  if (std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size() || ranks.empty()) {
    throw InvalidArgument({.where = "new_group",
                           .expected = "at least one rank, each once",
                           .got = fmt::format("[{}]", fmt::join(ranks, ", "))});
  }
  if (std::ranges::find(ranks, parent.global_rank) == ranks.end()) return {};
  // The index keeps the keys of groups apart that bear one name: the rows of a mesh may all be called "tensor".
  auto group = create(parent.store.with_prefix(fmt::format("groups/{}", index)), ranks, parent.global_rank,
                      {.backend = backend.value_or(context_->backend),
                       .name = name.empty() ? fmt::format("{}/{}", context_->name, index) : name,
                       .timeout = context_->timeout,
                       .network_interface = parent.network_interface,
                       .plugin_options = context_->plugin_options,
                       .debug = context_->debug},
                      context_->account, context_->failures);
  ends_->subgroups.push_back(group.ends_);
  return group;
}

ProcessGroup ProcessGroup::with_debug(bool on) const {
  auto group = *this;
  if (!group) return group;
  group.context_ = std::make_shared<GroupContext>(*context_);
  group.context_->debug = on;
  return group;
}

const ProcessGroup::Ends& ProcessGroup::ends(const char* operation) const {
  if (!ends_) {
    throw InvalidArgument({.where = operation,
                           .expected = "a member of the group",
                           .got = "a rank outside it",
                           .fix = "Call it only where `if (group)` holds."});
  }
  return *ends_;
}

World ProcessGroup::world() const { return ends("world"), context_->world; }
const std::string& ProcessGroup::name() const { return ends("name"), context_->name; }
const std::string& ProcessGroup::backend() const { return ends("backend"), context_->backend; }
const std::vector<int>& ProcessGroup::ranks() const { return ends("ranks"), context_->ranks; }
std::chrono::milliseconds ProcessGroup::timeout() const { return ends("timeout"), context_->timeout; }
bool ProcessGroup::debug() const { return ends("debug"), context_->debug; }
accounting::Account& ProcessGroup::account() const { return ends("account"), *context_->account; }
const c10::intrusive_ptr<c10d::ProcessGroup>& ProcessGroup::handle() const { return ends("handle").group; }

int ProcessGroup::group_rank(Member member) const {
  const auto& ranks = this->ranks();
  if (!member.is_global && member.rank >= 0 && member.rank < size()) return member.rank;
  const auto found = std::ranges::find(ranks, member.rank);
  if (member.is_global && found != ranks.end()) return static_cast<int>(found - ranks.begin());
  throw InvalidArgument({.where = "group " + name(),
                         .expected = member.is_global
                                         ? fmt::format("a member's global rank, one of {}", fmt::join(ranks, ", "))
                                         : fmt::format("a rank within the group, from 0 to {}", size() - 1),
                         .got = std::to_string(member.rank)});
}

Work ProcessGroup::all_reduce(const at::Tensor& tensor, const AllReduceOptions& options) const {
  Tensors tensors{tensor};
  return Work(ends("all_reduce").backend->allreduce(tensors, {.reduceOp = to_c10d(options.op)}));
}

Work ProcessGroup::all_reduce_coalesced(const Tensors& tensors, const AllReduceOptions& options) const {
  auto list = tensors;
  c10d::AllreduceCoalescedOptions c10d_options;
  c10d_options.reduceOp = to_c10d(options.op);
  return Work(ends("all_reduce_coalesced").backend->allreduce_coalesced(list, c10d_options));
}

Work ProcessGroup::all_reduce_sparse(const at::Tensor& tensor) const {
  Tensors tensors{tensor};
  return Work(ends("all_reduce_sparse").backend->allreduce_sparse(tensors, {}));
}

Work ProcessGroup::reduce(const at::Tensor& tensor, const ReduceOptions& options) const {
  Tensors tensors{tensor};
  return Work(
      ends("reduce").backend->reduce(tensors, {.reduceOp = to_c10d(options.op), .rootRank = group_rank(options.root)}));
}

Work ProcessGroup::broadcast(const at::Tensor& tensor, const RootOptions& options) const {
  Tensors tensors{tensor};
  return Work(ends("broadcast").backend->broadcast(tensors, {.rootRank = group_rank(options.root)}));
}

Work ProcessGroup::all_gather(const at::Tensor& output, const at::Tensor& input) const {
  require_elements("all_gather", output, input, size());
  auto to = output;
  auto from = input;
  return Work(ends("all_gather").backend->_allgather_base(to, from, {}));
}

Work ProcessGroup::all_gather(const Tensors& outputs, const at::Tensor& input) const {
  require_length("all_gather", "outputs", outputs.size(), static_cast<std::size_t>(size()));
  std::vector<Tensors> to{outputs};
  Tensors from{input};
  return Work(ends("all_gather").backend->allgather(to, from, {}));
}

Work ProcessGroup::all_gather_coalesced(const std::vector<Tensors>& outputs, const Tensors& inputs) const {
  require_length("all_gather_coalesced", "lists of outputs", outputs.size(), static_cast<std::size_t>(size()));
  auto to = outputs;
  auto from = inputs;
  return Work(ends("all_gather_coalesced").backend->allgather_coalesced(to, from, {}));
}

Work ProcessGroup::gather(const Tensors& outputs, const at::Tensor& input, const RootOptions& options) const {
  const int root = group_rank(options.root);
  require_length("gather", "outputs", outputs.size(), rank() == root ? static_cast<std::size_t>(size()) : 0);
  std::vector<Tensors> to;
  if (rank() == root) to.push_back(outputs);
  Tensors from{input};
  return Work(ends("gather").backend->gather(to, from, {.rootRank = root}));
}

Work ProcessGroup::scatter(const at::Tensor& output, const Tensors& inputs, const RootOptions& options) const {
  const int root = group_rank(options.root);
  require_length("scatter", "inputs", inputs.size(), rank() == root ? static_cast<std::size_t>(size()) : 0);
  Tensors to{output};
  std::vector<Tensors> from;
  if (rank() == root) from.push_back(inputs);
  return Work(ends("scatter").backend->scatter(to, from, {.rootRank = root}));
}

Work ProcessGroup::reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                                  const ReduceScatterOptions& options) const {
  require_elements("reduce_scatter", input, output, size());
  auto to = output;
  auto from = input;
  return Work(ends("reduce_scatter").backend->_reduce_scatter_base(to, from, {.reduceOp = to_c10d(options.op)}));
}

Work ProcessGroup::reduce_scatter(const at::Tensor& output, const Tensors& inputs,
                                  const ReduceScatterOptions& options) const {
  require_length("reduce_scatter", "inputs", inputs.size(), static_cast<std::size_t>(size()));
  Tensors to{output};
  std::vector<Tensors> from{inputs};
  return Work(ends("reduce_scatter").backend->reduce_scatter(to, from, {.reduceOp = to_c10d(options.op)}));
}

Work ProcessGroup::reduce_scatter_coalesced(const Tensors& outputs, const Tensors& inputs,
                                            const ReduceScatterOptions& options) const {
  auto to = outputs;
  auto from = inputs;
  return Work(ends("reduce_scatter_coalesced")
                  .backend->reduce_scatter_tensor_coalesced(to, from, {.reduceOp = to_c10d(options.op)}));
}

Work ProcessGroup::all_to_all(const at::Tensor& output, const at::Tensor& input, const AllToAllOptions& options) const {
  auto to = output;
  auto from = input;
  auto output_splits = options.output_splits;
  auto input_splits = options.input_splits;
  return Work(ends("all_to_all").backend->alltoall_base(to, from, output_splits, input_splits, {}));
}

Work ProcessGroup::send(const at::Tensor& tensor, Member to, const PointToPointOptions& options) const {
  Tensors tensors{tensor};
  return Work(ends("send").backend->send(tensors, group_rank(to), options.tag));
}

Work ProcessGroup::receive(const at::Tensor& tensor, Member from, const PointToPointOptions& options) const {
  Tensors tensors{tensor};
  return Work(ends("receive").backend->recv(tensors, group_rank(from), options.tag));
}

Work ProcessGroup::receive_from_any(const at::Tensor& tensor, const PointToPointOptions& options) const {
  Tensors tensors{tensor};
  return Work(ends("receive_from_any").backend->recvAnysource(tensors, options.tag));
}

Work ProcessGroup::barrier() const { return Work(ends("barrier").backend->barrier({})); }

void ProcessGroup::monitored_barrier(std::chrono::milliseconds timeout, bool wait_all_ranks) const {
  c10d::BarrierOptions options;
  options.timeout = timeout;
  ends("monitored_barrier").backend->monitoredBarrier(options, wait_all_ranks);
}

void ProcessGroup::label(const at::Tensor& tensor, std::vector<std::string> names, int divisor) const {
  ends("label");
  context_->account->labels().set(tensor.const_data_ptr(), {.names = std::move(names), .divisor = divisor});
}

void ProcessGroup::label_as(const at::Tensor& copy, const at::Tensor& labelled) const {
  ends("label_as");
  auto& labels = context_->account->labels();
  const auto label = labels.find(labelled.const_data_ptr());
  if (!label.names.empty()) labels.set(copy.const_data_ptr(), label);
}

void ProcessGroup::unlabel(const void* data) const {
  ends("unlabel");
  context_->account->labels().erase(data);
}

void ProcessGroup::explain_failures(const std::string& operation, const std::function<void()>& call) const {
  ends("explain_failures");
  explained(*context_, operation, call);
}

void ProcessGroup::abort() const {
  ends("abort").backend->abort();
  for (const auto& subgroup : ends_->subgroups) {
    if (const auto ends = subgroup.lock()) ends->backend->abort();
  }
}

}  // namespace lockstep::comm
