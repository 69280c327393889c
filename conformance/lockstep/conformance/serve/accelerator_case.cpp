#include "lockstep/conformance/serve/accelerator_case.h"

namespace lockstep::conformance {
namespace {

config::DataLoaderConfiguration data_configuration_from(Arguments given) {
  config::DataLoaderConfiguration config;
  config.split_batches = given.flag("split_batches", config.split_batches);
  config.even_batches = given.flag("even_batches", config.even_batches);
  config.use_seedable_sampler = given.flag("use_seedable_sampler", config.use_seedable_sampler);
  config.data_seed = given.optional_integer("data_seed", config.data_seed);
  config.non_blocking = given.flag("non_blocking", config.non_blocking);
  config.dispatch_batches = given.optional_flag("dispatch_batches");
  config.use_stateful_dataloader = given.flag("use_stateful_dataloader", config.use_stateful_dataloader);
  given.finish();
  return config;
}

config::GradientAccumulationPlugin accumulation_from(Arguments given) {
  config::GradientAccumulationPlugin plugin;
  plugin.num_steps = given.small_integer("num_steps", plugin.num_steps);
  plugin.sync_with_dataloader = given.flag("sync_with_dataloader", plugin.sync_with_dataloader);
  plugin.sync_each_batch = given.flag("sync_each_batch", plugin.sync_each_batch);
  plugin.adjust_scheduler = given.flag("adjust_scheduler", plugin.adjust_scheduler);
  given.finish();
  return plugin;
}

}  // namespace

AcceleratorOptions constructor_options_from(Arguments given) {
  AcceleratorOptions options{.cpu = true};
  options.device_placement = given.flag("device_placement", options.device_placement);
  if (given.has("rng_types") && !given.json("rng_types").is_null()) options.rng_types = given.words("rng_types");
  options.split_batches = given.optional_flag("split_batches");
  options.even_batches = given.optional_flag("even_batches");
  options.dispatch_batches = given.optional_flag("dispatch_batches");
  options.mixed_precision = given.optional_word("mixed_precision");
  options.gradient_accumulation_steps =
      given.small_integer("gradient_accumulation_steps", options.gradient_accumulation_steps);
  options.step_scheduler_with_optimizer =
      given.flag("step_scheduler_with_optimizer", options.step_scheduler_with_optimizer);
  given.finish();
  return options;
}

AcceleratorOptions accelerator_options_from(Arguments& arguments) {
  auto options = constructor_options_from(arguments.object("accelerator"));
  options.dataloader_config = data_configuration_from(arguments.object("config"));
  auto accumulation = arguments.object("accumulation");
  if (!arguments.json("accumulation").is_null()) options.gradient_accumulation_plugin = accumulation_from(accumulation);
  return options;
}

}  // namespace lockstep::conformance
