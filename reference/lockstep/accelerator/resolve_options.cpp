#include "lockstep/accelerator/resolve_options.h"

#include <fmt/format.h>

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/words.h"
#include "lockstep/parallel/ddp/valid_kwargs.h"
#include "lockstep/precision/grad_scaler.h"

namespace lockstep {
namespace {

std::optional<bool> resolve(const char* option, const std::optional<bool>& here,
                            const std::optional<bool>& in_configuration) {
  if (here && in_configuration && *here != *in_configuration) {
    throw InvalidArgument(
        {.where = fmt::format("Accelerator({})", option),
         .expected = "one value for the option",
         .got = fmt::format("{} in the constructor and {} in dataloader_config", *here, *in_configuration),
         .fix = "Give it in one place."});
  }
  return here ? here : in_configuration;
}

// A field that still has its default says nothing; one that differs from it was given.
std::optional<bool> if_given(bool field, bool standard) {
  return field == standard ? std::nullopt : std::optional(field);
}

void require_one_of_each_kind(const std::vector<config::KwargsHandler>& handlers) {
  std::set<std::size_t> kinds;
  for (const auto& handler : handlers) {
    if (kinds.insert(handler.index()).second) continue;
    throw InvalidArgument({.where = "Accelerator(kwargs_handlers)",
                           .expected = "at most one handler of each kind",
                           .got = "two of one kind",
                           .fix = "Put all options of that kind into one handler."});
  }
}

// Of a kind that may stand in a field of its own as well.
template <typename Handler>
Handler handler_of(const AcceleratorOptions& options, const char* field, const Handler& in_field) {
  require_one_of_each_kind(options.kwargs_handlers);
  const auto* handler = config::find_handler<Handler>(options.kwargs_handlers);
  if (handler == nullptr) return in_field;
  if (in_field != Handler{} && in_field != *handler) {
    throw InvalidArgument({.where = fmt::format("Accelerator({})", field),
                           .expected = "these options in one place",
                           .got = "others in kwargs_handlers",
                           .fix = fmt::format("Leave {} out.", field)});
  }
  return *handler;
}

state::MixedPrecision mode_of(const AcceleratorOptions& options) {
  if (options.mixed_precision) return state::mixed_precision_from(*options.mixed_precision);
  if (state::AcceleratorState::is_initialized()) return state::AcceleratorState().mixed_precision();
  const auto& environment = state::RankContext::current().environment();
  return state::mixed_precision_from(environment.find("ACCELERATE_MIXED_PRECISION").value_or("no"));
}

// The same in two places: one of them, unless both are given and differ.
template <typename T>
std::optional<T> one_of(const char* option, const std::optional<T>& here, const char* elsewhere,
                        const std::optional<T>& there) {
  if (!here) return there;
  if (there && *there != *here) {
    throw InvalidArgument({.where = fmt::format("Accelerator({})", option),
                           .expected = "one value for the option",
                           .got = fmt::format("another one in {}", elsewhere),
                           .fix = "Give it in one place."});
  }
  return here;
}

// "nccl" is what stands there when nothing was said.
std::optional<std::string> named_backend(const config::InitProcessGroupKwargs& kwargs) {
  return kwargs.backend == "nccl" ? std::nullopt : kwargs.backend;
}

config::TorchDynamoPlugin dynamo_plugin_of(const AcceleratorOptions& options, const state::Environment& environment) {
  if (options.dynamo_plugin && options.dynamo_backend) {
    throw InvalidArgument({.where = "Accelerator(dynamo_backend)",
                           .expected = "either dynamo_backend or dynamo_plugin",
                           .got = "both",
                           .fix = "Give the backend in the plugin alone."});
  }
  auto plugin = options.dynamo_plugin.value_or(config::TorchDynamoPlugin{.backend = options.dynamo_backend});
  const auto variable = [&environment](const char* name) {
    return environment.find(std::string("ACCELERATE_DYNAMO_") + name);
  };
  const auto flag = [&environment](const char* name) {
    return environment.flag(std::string("ACCELERATE_DYNAMO_USE_") + name);
  };
  if (!plugin.backend) plugin.backend = variable("BACKEND").value_or("no");
  plugin.backend = lower(*plugin.backend);
  if (!plugin.mode) plugin.mode = variable("MODE").value_or("default");
  if (!plugin.fullgraph) plugin.fullgraph = flag("FULLGRAPH");
  if (!plugin.dynamic && variable("USE_DYNAMIC")) plugin.dynamic = flag("DYNAMIC");
  if (!plugin.use_regional_compilation) plugin.use_regional_compilation = flag("REGIONAL_COMPILATION");
  return plugin;
}

void require_environment_rendezvous(const std::optional<std::string>& init_method) {
  if (!init_method || *init_method == "env://") return;
  throw NotSupported({.where = "InitProcessGroupKwargs(init_method)",
                      .expected = "'env://'",
                      .got = "'" + *init_method + "'",
                      .fix = "Set MASTER_ADDR and MASTER_PORT, or start the ranks with a launcher."});
}

void refuse_what_is_not_there(const AcceleratorOptions& options, const state::Environment& environment) {
  const auto refuse = [](const std::string& where, const std::string& got, const std::string& fix) {
    throw NotSupported({.where = where, .expected = "what this version has", .got = got, .fix = fix});
  };
  const auto compiler = dynamo_plugin_of(options, environment).backend.value();
  if (compiler != "no") {
    refuse("Accelerator(dynamo_backend)", "'" + compiler + "'", "There is no compiler in LibTorch: leave it out.");
  }
  if (!options.log_with.empty()) {
    refuse("Accelerator(log_with)", "'" + options.log_with.front() + "'", "Write what you track yourself.");
  }
  const auto& project = options.project_config;
  if (project.automatic_checkpoint_naming || project.total_limit || project.save_on_each_node) {
    refuse("ProjectConfiguration", "options of checkpoints, which are not written yet",
           "Leave automatic_checkpoint_naming, total_limit and save_on_each_node out.");
  }
  for (const auto* engine : {"DEEPSPEED", "FSDP", "MEGATRON_LM", "PARALLELISM_CONFIG"}) {
    const auto variable = std::string("ACCELERATE_USE_") + engine;
    if (environment.flag(variable)) refuse(variable, "an engine that is not there", "Unset it to train with DDP.");
  }
}

}  // namespace

config::DistributedDataParallelKwargs ddp_kwargs_of(const AcceleratorOptions& options) {
  return handler_of(options, "ddp_kwargs", options.ddp_kwargs);
}

config::ProfileKwargs profile_kwargs_of(const AcceleratorOptions& options) {
  return handler_of(options, "profile_kwargs", options.profile_kwargs);
}

precision::Policy::Options precision_of(const AcceleratorOptions& options, c10::DeviceType device) {
  require_one_of_each_kind(options.kwargs_handlers);
  const auto mode = mode_of(options);
  precision::Policy::Options policy{
      .mode = mode,
      .device = device,
      .autocast = config::handler_or_default<config::AutocastKwargs>(options.kwargs_handlers)};
  const auto* recipe = config::find_handler<config::FP8RecipeKwargs>(options.kwargs_handlers);
  if (mode == state::MixedPrecision::fp8) {
    policy.fp8 = precision::fp8_recipe_of(recipe ? *recipe : config::FP8RecipeKwargs{},
                                          state::RankContext::current().environment());
  } else if (recipe != nullptr) {
    throw InvalidArgument({.where = "Accelerator(kwargs_handlers)",
                           .expected = "mixed_precision 'fp8' with an fp8 recipe",
                           .got = fmt::format("'{}'", state::to_word(mode)),
                           .fix = "Pass mixed_precision=\"fp8\", or leave the recipe out."});
  }
  return policy;
}

namespace {

// Everything that the other functions here refuse, before there is a state that would have to be taken back.
void require_valid(const AcceleratorOptions& options) {
  parallel::require_valid(ddp_kwargs_of(options));
  static_cast<void>(precision_of(options));
  static_cast<void>(profile_kwargs_of(options));
  static_cast<void>(project_configuration_of(options));
  static_cast<void>(data_configuration_of(options));
  static_cast<void>(accumulation_of(options, state::RankContext::current().environment()));
  static_cast<void>(rng_types_of(options));
  const auto scaler = config::handler_or_default<config::GradScalerKwargs>(options.kwargs_handlers);
  static_cast<void>(precision::GradScaler(scaler, at::kCPU));
}

}  // namespace

state::AcceleratorStateOptions state_options_of(const AcceleratorOptions& options) {
  refuse_what_is_not_there(options, state::RankContext::current().environment());
  require_valid(options);
  const auto kwargs = handler_of(options, "init_process_group_kwargs", options.init_process_group_kwargs);
  require_environment_rendezvous(kwargs.init_method);
  const auto timeout = one_of("timeout", options.timeout, "init_process_group_kwargs", kwargs.timeout);
  return {.mixed_precision = options.mixed_precision,
          .dynamo_plugin = dynamo_plugin_of(options, state::RankContext::current().environment()),
          .partial = {.cpu = options.cpu, .backend = named_backend(kwargs), .timeout = timeout}};
}

config::ProjectConfiguration project_configuration_of(const AcceleratorOptions& options) {
  auto project = options.project_config;
  const auto logging_dir = one_of("logging_dir", options.logging_dir, "project_config", project.logging_dir);
  project.logging_dir = logging_dir ? logging_dir : project.project_dir;  // from now on, wherever the project moves
  if (!project.project_dir && options.project_dir) project.set_directories(options.project_dir);
  return project;
}

std::vector<random::RngType> rng_types_of(const AcceleratorOptions& options) {
  std::vector<random::RngType> types;
  for (const auto& word : options.rng_types) types.push_back(random::rng_type_from(word));
  return types;
}

config::DataLoaderConfiguration data_configuration_of(const AcceleratorOptions& options) {
  const config::DataLoaderConfiguration standard;
  auto data = options.dataloader_config;
  data.split_batches =
      resolve("split_batches", options.split_batches, if_given(data.split_batches, standard.split_batches))
          .value_or(standard.split_batches);
  data.even_batches = resolve("even_batches", options.even_batches, if_given(data.even_batches, standard.even_batches))
                          .value_or(standard.even_batches);
  data.dispatch_batches = resolve("dispatch_batches", options.dispatch_batches, data.dispatch_batches);
  return data;
}

int checked_num_steps(int steps) {
  if (steps >= 1) return steps;
  throw InvalidArgument({.where = "gradient_accumulation_steps",
                         .expected = "at least 1",
                         .got = std::to_string(steps),
                         .fix = "Pass 1 for an optimizer step after each batch."});
}

config::GradientAccumulationPlugin accumulation_of(const AcceleratorOptions& options,
                                                   const state::Environment& environment) {
  const auto& plugin = options.gradient_accumulation_plugin;
  if (plugin && options.gradient_accumulation_steps != 1) {
    throw InvalidArgument({.where = "Accelerator(gradient_accumulation_steps)",
                           .expected = "either gradient_accumulation_steps or gradient_accumulation_plugin",
                           .got = "both",
                           .fix = "Give num_steps in the plugin alone."});
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
