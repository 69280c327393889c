#include "lockstep/accelerator/resolve_options.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

// A field that still has its default says nothing; one that differs from it was given.
bool resolve(const char* option, const std::optional<bool>& here, bool in_configuration, bool standard) {
  if (!here) return in_configuration;
  if (in_configuration != standard && in_configuration != *here) {
    throw InvalidArgument(
        {.where = fmt::format("Accelerator({})", option),
         .expected = "one value for the option",
         .got = fmt::format("{} in the constructor and {} in dataloader_config", *here, in_configuration),
         .fix = "Give it in one place."});
  }
  return *here;
}

}  // namespace

state::AcceleratorStateOptions state_options_of(const AcceleratorOptions& options) {
  const auto refused = [](std::string_view word) {
    throw NotSupported({.where = "Accelerator(mixed_precision)",
                        .expected = "'no'",
                        .got = fmt::format("'{}', which this version does not have", word),
                        .fix = "Train in full precision, or convert the model yourself."});
  };
  const auto word = options.mixed_precision.value_or(
      state::RankContext::current().environment().find("ACCELERATE_MIXED_PRECISION").value_or("no"));
  const auto asked = state::mixed_precision_from(word);
  const bool contradicts = options.mixed_precision && state::AcceleratorState::is_initialized() &&
                           state::AcceleratorState().mixed_precision() != asked;  // which the state itself refuses
  if (asked != state::MixedPrecision::no && !contradicts) refused(word);
  return {.mixed_precision = options.mixed_precision, .partial = {.cpu = options.cpu, .timeout = options.timeout}};
}

config::DataLoaderConfiguration data_configuration_of(const AcceleratorOptions& options) {
  const config::DataLoaderConfiguration standard;
  auto data = options.dataloader_config;
  data.split_batches = resolve("split_batches", options.split_batches, data.split_batches, standard.split_batches);
  data.even_batches = resolve("even_batches", options.even_batches, data.even_batches, standard.even_batches);
  return data;
}

int checked_num_steps(int steps) {
  if (steps >= 1) return steps;
  throw InvalidArgument(
      {.where = "gradient_accumulation_steps", .expected = "at least 1", .got = std::to_string(steps)});
}

config::GradientAccumulationPlugin accumulation_of(const AcceleratorOptions& options,
                                                   const state::Environment& environment) {
  const auto& plugin = options.gradient_accumulation_plugin;
  if (plugin && options.gradient_accumulation_steps != 1) {
    throw InvalidArgument({.where = "Accelerator(gradient_accumulation_steps)",
                           .expected = "either gradient_accumulation_steps or gradient_accumulation_plugin",
                           .got = "both"});
  }
  if (plugin) {
    static_cast<void>(checked_num_steps(plugin->num_steps));
    return *plugin;
  }
  const auto steps = environment.number("ACCELERATE_GRADIENT_ACCUMULATION_STEPS");
  return {.num_steps = checked_num_steps(steps.value_or(options.gradient_accumulation_steps)),
          .adjust_scheduler = false};
}

}  // namespace lockstep
