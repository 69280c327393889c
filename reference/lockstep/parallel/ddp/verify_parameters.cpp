#include "lockstep/parallel/ddp/verify_parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <torch/nn/module.h>
#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/comm/operations.h"

namespace lockstep::parallel {
namespace {

std::vector<Value> descriptions(const torch::nn::Module& model) {
  std::vector<Value> lines;
  const auto describe = [&lines](const std::string& name, const at::Tensor& tensor) {
    lines.emplace_back(fmt::format("{} {}[{}]{}", name, c10::toString(tensor.scalar_type()),
                                   fmt::join(tensor.sizes(), ", "), tensor.requires_grad() ? "" : ", frozen"));
  };
  for (const auto& item : model.named_parameters()) describe(item.key(), item.value());
  for (const auto& item : model.named_buffers()) describe("buffer " + item.key(), item.value().detach());
  return lines;
}

}  // namespace

void verify_parameters(const torch::nn::Module& model, const comm::ProcessGroup& group) {
  // One list per rank: gather_object flattens one level.
  const auto all = comm::gather_object(Value::list({Value::list(descriptions(model))}), group).items();
  if (std::ranges::all_of(all, [&all](const Value& one) { return one == all.front(); })) return;
  std::size_t longest = 0;
  for (const auto& one : all) longest = std::max(longest, one.size());
  for (std::size_t i = 0; i < longest; ++i) {
    const auto at = [i](const Value& one) { return i < one.size() ? one[i].string() : std::string("nothing"); };
    if (std::ranges::all_of(all, [&](const Value& one) { return at(one) == at(all.front()); })) continue;
    std::string text;
    for (std::size_t rank = 0; rank < all.size(); ++rank) text += fmt::format("\n  - rank {}: {}", rank, at(all[rank]));
    throw CollectiveMismatch({.where = "DistributedDataParallel",
                              .expected = "the same parameters and buffers, in the same order, on all ranks",
                              .got = fmt::format("at position {}:{}", i, text),
                              .fix = "\nBuild the model alike on every rank."});
  }
}

}  // namespace lockstep::parallel
