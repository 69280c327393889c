#include "lockstep/conformance/serve/operations.h"

#include <algorithm>

namespace lockstep::conformance {

const std::vector<NamedOperation>& operations() {
  static const std::vector<NamedOperation> all = {
      {"data.shard", data_shard},
      {"data.iterable_shard", data_iterable_shard},
      {"data.loader", data_loader},
      {"data.dispatcher", data_dispatcher},
      {"data.skip_first_batches", data_skip_first_batches},
      {"data.seedable_sampler", data_seedable_sampler},
      {"data.resume", data_resume},
      {"state.process", state_process},
      {"state.split_between_processes", state_split_between_processes},
      {"state.control", state_control},
      {"ops.gather", ops_gather},
      {"ops.gather_object", ops_gather_object},
      {"ops.gather_for_metrics", ops_gather_for_metrics},
      {"ops.reduce", ops_reduce},
      {"ops.broadcast", ops_broadcast},
      {"ops.broadcast_object_list", ops_broadcast_object_list},
      {"ops.pad_across_processes", ops_pad_across_processes},
      {"ops.verify", ops_verify},
      {"train.program", train_program},
      {"rng.program", rng_program},
      {"amp.scaler", amp_scaler},
      {"amp.autocast", amp_autocast},
  };
  return all;
}

Operation operation_named(std::string_view name) {
  const auto found = std::ranges::find(operations(), name, &NamedOperation::name);
  if (found != operations().end()) return found->run;
  throw Unsupported("operation " + std::string(name));
}

std::vector<std::string> capabilities() {
  std::vector<std::string> all;
  for (const auto& operation : operations()) all.emplace_back(operation.name);
  for (const char* feature : {"ddp", "amp.fp16_cpu", "amp.bf16", "amp.fp8", "stateful_loader"}) {
    all.emplace_back(feature);
  }
  return all;
}

}  // namespace lockstep::conformance
