"""The one Accelerator of a case, from `config`, `accelerator` and what else the operation asks for."""

from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, GradientAccumulationPlugin

from .arguments import check_names

CONFIGURATION = ("split_batches", "dispatch_batches", "even_batches", "use_seedable_sampler", "data_seed",
                 "non_blocking", "use_stateful_dataloader")
CONSTRUCTOR = ("device_placement", "rng_types", "split_batches", "dispatch_batches", "even_batches", "mixed_precision",
               "gradient_accumulation_steps", "step_scheduler_with_optimizer")
ACCUMULATION = ("num_steps", "sync_with_dataloader", "sync_each_batch", "adjust_scheduler")


def make_accelerator(accelerator: dict, config: dict | None = None, accumulation: dict | None = None,
                     handlers: list | None = None) -> Accelerator:
    """An Accelerator on CPU; only the fields given are passed on."""
    check_names(accelerator, "accelerator", CONSTRUCTOR)
    options = {"cpu": True, **accelerator}
    if config:
        check_names(config, "config", CONFIGURATION)
        options["dataloader_config"] = DataLoaderConfiguration(**config)
    if accumulation is not None:
        check_names(accumulation, "accumulation", ACCUMULATION)
        options["gradient_accumulation_plugin"] = GradientAccumulationPlugin(**accumulation)
    if handlers:
        options["kwargs_handlers"] = handlers
    return Accelerator(**options)
