"""All operations that this subject answers, by their names."""

from . import (data_loaders, data_shards, metrics, precision, random_program, state_operations, train_program,
               value_operations)

OPERATIONS = {
    **data_shards.OPERATIONS,
    **data_loaders.OPERATIONS,
    **state_operations.OPERATIONS,
    **value_operations.OPERATIONS,
    **metrics.OPERATIONS,
    **train_program.OPERATIONS,
    **random_program.OPERATIONS,
    **precision.OPERATIONS,
}
