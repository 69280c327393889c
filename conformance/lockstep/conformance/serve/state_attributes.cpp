#include "lockstep/conformance/serve/state_attributes.h"

#include <algorithm>

#include "lockstep/state/rank_context.h"

namespace lockstep::conformance {
namespace {

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(); }

// The protocol asks where work is done, not which of the CPUs.
std::string device_word(const at::Device& device) { return device.is_cpu() ? "cpu" : device.str(); }

Attributes partial_attributes(const state::PartialState& state) {
  return {{"num_processes", [state] { return state.num_processes(); }},
          {"process_index", [state] { return state.process_index(); }},
          {"local_process_index", [state] { return state.local_process_index(); }},
          {"is_main_process", [state] { return state.is_main_process(); }},
          {"is_local_main_process", [state] { return state.is_local_main_process(); }},
          {"is_last_process", [state] { return state.is_last_process(); }},
          {"use_distributed", [state] { return state.use_distributed(); }},
          {"distributed_type", [state] { return std::string(to_word(state.distributed_type())); }},
          {"backend", [state] { return or_null(state.backend()); }},
          {"device", [state] { return device_word(state.device()); }},
          {"debug", [state] { return state.debug(); }},
          {"initialized", [state] { return state.initialized(); }}};
}

Attributes accelerator_attributes(const state::AcceleratorState& state) {
  auto attributes = partial_attributes(state);
  attributes.emplace_back("mixed_precision", [state] { return std::string(to_word(state.mixed_precision())); });
  return attributes;
}

Attributes gradient_attributes(const state::GradientState& state) {
  return {{"sync_gradients", [&state] { return state.sync_gradients; }},
          {"num_steps", [&state] { return state.num_steps; }},
          {"adjust_scheduler", [&state] { return state.adjust_scheduler; }},
          {"sync_with_dataloader", [&state] { return state.sync_with_dataloader; }},
          {"end_of_dataloader", [&state] { return state.end_of_dataloader(); }},
          {"remainder", [&state] { return state.remainder(); }},
          {"in_dataloader", [&state] { return state.in_dataloader(); }}};
}

}  // namespace

Attributes attributes_of(const std::string& of, const state::PartialState& state) {
  if (of == "partial") return partial_attributes(state);
  if (of == "gradient") return gradient_attributes(state.rank().gradient_state());
  throw Unsupported("state of " + of);
}

Attributes attributes_of(const std::string& of, const state::AcceleratorState& state) {
  return of == "accelerator" ? accelerator_attributes(state)
                             : attributes_of(of, static_cast<const state::PartialState&>(state));
}

Json read_all(const Attributes& attributes) {
  Json all;
  for (const auto& [name, read] : attributes) all[name] = read();
  return all;
}

Json read_one(const Attributes& attributes, const std::string& name) {
  const auto found = std::ranges::find(attributes, name, [](const auto& attribute) { return attribute.first; });
  if (found == attributes.end()) throw Unsupported("attribute " + name);
  return found->second();
}

}  // namespace lockstep::conformance
