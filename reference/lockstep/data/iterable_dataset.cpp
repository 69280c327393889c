#include "lockstep/data/iterable_dataset.h"

namespace lockstep::data {

IterableDataset::~IterableDataset() = default;

}  // namespace lockstep::data
