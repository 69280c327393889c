#include "lockstep/sim/gallery/generated/interpreter.h"

#include <ATen/ops/ones.h>

#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

#include "lockstep/sim/gallery/generated/call_sites.h"

namespace lockstep::sim::generated {

void PreparedCall::keep(comm::Work started) { work = std::move(started); }

namespace {

at::ScalarType to_aten(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32: return at::kFloat;
    case Dtype::float64: return at::kDouble;
    case Dtype::int32: return at::kInt;
    case Dtype::int64: return at::kLong;
  }
  return at::kFloat;
}

comm::ReduceOp to_comm(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return comm::ReduceOp::sum;
    case Reduction::product: return comm::ReduceOp::product;
    case Reduction::min: return comm::ReduceOp::min;
    case Reduction::max: return comm::ReduceOp::max;
  }
  return comm::ReduceOp::sum;
}

at::Tensor ones(const Call& call, std::int64_t num_parts = 1) {
  auto shape = call.shape;
  shape.front() *= num_parts;
  return at::ones(shape, to_aten(call.dtype));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

class Interpreter {
 public:
  Interpreter(Rank& rank, const Program& program) : rank_(rank), store_(rank.store()) {
    groups_.push_back(rank.world());
    for (std::size_t i = 1; i < program.groups.size(); ++i) {
      groups_.push_back(rank.world().new_group(program.groups[i].ranks, program.groups[i].name));
    }
  }

  void run(const std::vector<Call>& calls) {
    for (const auto& call : calls) {
      if (call.delay_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(call.delay_ms));
      if (call.action == Action::leave) return;
      if (call.action == Action::fail) throw std::runtime_error("the fault that was planted");
      if (call.action == Action::wait) {
        for (auto* started : std::exchange(under_way_[call.awaited], {})) wait_for(*started, call.line);
      } else {
        make(call);
      }
    }
  }

 private:
  void make(const Call& call) {
    auto& prepared = calls_.emplace_back();
    prepare(call, prepared);
    make_call_at(call.line, prepared);
    if (!prepared.work) return;  // the store's
    if (call.asynchronous) {
      under_way_[call.line].push_back(&prepared);
    } else {
      wait_for(prepared, call.line);
    }
  }

  static void wait_for(PreparedCall& started, int line) {
    PreparedCall wait{.action = Action::wait, .awaited = &*started.work};
    make_call_at(line, wait);
  }

  void prepare(const Call& call, PreparedCall& prepared) {
    prepared.action = call.action;
    if (!is_checked(call.action)) {
      prepared.store = store_;
      prepared.key = call.key;
      prepared.value = "set";
      prepared.keys = {call.key};
      prepared.timeout = store_.timeout();
      return;
    }
    prepared.group = groups_.at(static_cast<std::size_t>(call.group));
    prepared.peer = comm::Member::global(call.peer);
    prepared.root.root = prepared.peer;
    prepared.rooted = {.root = prepared.peer, .op = to_comm(call.reduction)};
    prepared.reduction.op = to_comm(call.reduction);
    prepared.scattered.op = to_comm(call.reduction);
    prepared.tagged.tag = call.tag;
    if (has_tensor(call.action)) make_tensors(call, prepared);
    if (!call.label.empty()) prepared.group.label(prepared.tensor, lines_of(call.label));
  }

  void make_tensors(const Call& call, PreparedCall& prepared) const {
    const int size = prepared.group.size();
    prepared.tensor = ones(call);
    prepared.whole = ones(call, size);
    prepared.result = ones(call, size);
    const bool has_parts = call.action == Action::gather || call.action == Action::scatter;
    if (!has_parts || call.peer != rank_.rank()) return;
    for (int member = 0; member < size; ++member) prepared.parts.push_back(ones(call));
  }

  Rank& rank_;
  comm::Store store_;
  std::vector<comm::ProcessGroup> groups_;
  std::deque<PreparedCall> calls_;  // which stay where they are
  std::map<int, std::vector<PreparedCall*>> under_way_;
};

}  // namespace

void run_program(Rank& rank, const Program& program) {
  if (program.world_size != rank.world_size()) {
    throw std::invalid_argument("generated program: expected " + std::to_string(program.world_size) + " ranks, got " +
                                std::to_string(rank.world_size()));
  }
  Interpreter(rank, program).run(program.ranks.at(static_cast<std::size_t>(rank.rank())));
}

void run_generated(Rank& rank, const std::string& program_json_path) {
  std::ifstream file(program_json_path);
  if (!file) throw std::invalid_argument("generated program: expected a file, got '" + program_json_path + "'");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  run_program(rank, parse_program(text));
}

}  // namespace lockstep::sim::generated
