#include "lockstep/comm/capabilities.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

const std::set<std::string> kReals = {"Float", "Double", "BFloat16", "Half", "Char", "Byte", "Int", "Long", "Bool"};
const std::set<std::string> kComplex = {"ComplexFloat", "ComplexDouble"};
const std::set<std::string> kArithmetic = {"sum", "avg", "product", "min", "max"};

std::set<std::string> united(std::set<std::string> a, const std::set<std::string>& b) {
  a.insert(b.begin(), b.end());
  return a;
}

bool is_reduction(const std::string& operation) {
  return operation == "allreduce" || operation == "reduce" || operation == "reduce_scatter";
}

}  // namespace

std::string_view to_word(ReduceOp op) {
  constexpr std::array words = {"sum", "avg", "product", "min", "max", "band", "bor", "bxor"};
  return words.at(static_cast<std::size_t>(op));
}

// As LibTorch 2.11's ProcessGroupGloo was seen to answer, operation by operation: int16 and the 8-bit floats are
// unknown to it, complex numbers can be summed but neither compared nor moved by every operation, and its reduce and
// reduce_scatter know the same types.
Capabilities Capabilities::gloo() {
  Capabilities able;
  able.backend_ = "gloo";
  const auto bits = united(kArithmetic, {"band", "bor", "bxor"});
  std::map<std::string, OperationCapabilities> operations;
  for (const char* reduction : {"allreduce", "reduce", "reduce_scatter"}) {
    operations[reduction] = {united(kReals, kComplex), bits};
  }
  for (const char* movement : {"broadcast", "allgather", "gather", "scatter", "alltoall", "send", "recv", "barrier"}) {
    operations[movement] = {};
  }
  able.operations_ = std::move(operations);
  able.adds_bools_as_bytes_ = true;
  able.as_bytes_ = {at::kComplexFloat,    at::kComplexDouble,  at::kShort,         at::kUInt16,
                    at::kUInt32,          at::kUInt64,         at::kFloat8_e4m3fn, at::kFloat8_e5m2,
                    at::kFloat8_e4m3fnuz, at::kFloat8_e5m2fnuz};
  return able;
}

// The thread backend reduces with ATen itself; the 8-bit floats have no arithmetic there.
Capabilities Capabilities::threads() {
  Capabilities able = gloo();
  able.backend_ = "threads";
  for (const char* reduction : {"allreduce", "reduce", "reduce_scatter"}) {
    able.operations_->at(reduction).dtypes.insert("Short");
  }
  able.adds_bools_as_bytes_ = false;
  able.as_bytes_.clear();
  return able;
}

Capabilities Capabilities::from_json(const std::string& backend, std::string_view text) {
  Capabilities able;
  able.backend_ = backend;
  try {
    const auto json = nlohmann::json::parse(text);
    std::map<std::string, OperationCapabilities> operations;
    for (const auto& [operation, what] : json.at("ops").items()) {
      operations[operation] = {.dtypes = what.value("dtypes", std::set<std::string>{}),
                               .reduce_ops = what.value("reduce_ops", std::set<std::string>{})};
    }
    able.operations_ = std::move(operations);
    able.has_tags_ = json.value("tags", true);
    able.has_groups_ = json.value("groups", true);
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument({.where = "capabilities of backend " + backend,
                           .expected = R"(JSON like {"name": "x", "ops": {"allreduce": {"dtypes": ["Float"]}}})",
                           .got = error.what()});
  }
  return able;
}

void Capabilities::require_tag(int tag) const {
  if (has_tags_ || tag == 0) return;
  throw NotSupported({.where = "send or receive",
                      .expected = "tag 0, since backend " + backend_ + " has no tags",
                      .got = "tag " + std::to_string(tag)});
}

void Capabilities::require_groups() const {
  if (has_groups_) return;
  throw NotSupported({.where = "new_group", .got = "backend " + backend_ + ", which has no groups within the world"});
}

ReduceOp Capabilities::stand_in(at::ScalarType dtype, ReduceOp op) const {
  return adds_bools_as_bytes_ && dtype == at::kBool && op == ReduceOp::sum ? ReduceOp::bor : op;
}

bool Capabilities::moves_as_bytes(at::ScalarType dtype) const { return as_bytes_.contains(dtype); }

void Capabilities::require(const std::string& operation) const {
  if (!operations_ || operations_->contains(operation)) return;
  throw NotSupported(
      {.where = operation, .got = fmt::format("backend {}, which does not have this operation", backend_)});
}

void Capabilities::require(const std::string& operation, at::ScalarType dtype, std::optional<ReduceOp> op) const {
  const std::string type = c10::toString(dtype);
  if (op == ReduceOp::avg && c10::isIntegralType(dtype, /*includeBool=*/true)) {
    throw RuntimeError({.where = operation,
                        .expected = "floating-point elements for a mean",
                        .got = type,
                        .fix = "Convert to a floating-point dtype first, or sum and divide."});
  }
  const bool is_bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  if (is_bitwise && !c10::isIntegralType(dtype, /*includeBool=*/true)) {
    throw NotSupported(
        {.where = operation, .expected = "integers or booleans for " + std::string(to_word(*op)), .got = type});
  }
  if (op && c10::isComplexType(dtype) && *op != ReduceOp::sum && *op != ReduceOp::avg) {
    throw NotSupported({.where = operation,
                        .expected = "sum or avg for complex numbers",
                        .got = std::string(to_word(*op)) + " of " + type});
  }
  require(operation);
  if (!operations_) return;
  const auto& [dtypes, reduce_ops] = operations_->at(operation);
  if (!dtypes.empty() && !dtypes.contains(type) && (is_reduction(operation) || !as_bytes_.contains(dtype))) {
    throw NotSupported({.where = operation,
                        .expected = fmt::format("a dtype that backend {} can {}: {}", backend_,
                                                is_reduction(operation) ? "reduce" : "move", fmt::join(dtypes, ", ")),
                        .got = type,
                        .fix = "Convert the tensor first."});
  }
  if (op && !reduce_ops.empty() && !reduce_ops.contains(std::string(to_word(*op)))) {
    throw NotSupported(
        {.where = operation,
         .expected = fmt::format("a reduction that backend {} has: {}", backend_, fmt::join(reduce_ops, ", ")),
         .got = std::string(to_word(*op))});
  }
}

}  // namespace lockstep::comm
