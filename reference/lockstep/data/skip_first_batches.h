#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/base/export.h"
#include "lockstep/data/data_loader.h"
#include "lockstep/data/prepared_data_loader.h"

namespace lockstep::data {

/// The same loader without the first `num_batches` of each pass, for taking up a pass where it was left. The original
/// is not changed; the two share dataset and samplers, so that their passes may follow each other but not interleave.
///
/// 5 items in batches of 2, one skipped: [2 3] [4]. Its length is the original's less `num_batches`; length() throws
/// InvalidArgument when that is negative, and passes are then empty. Batches of a map-style dataset are skipped without
/// fetching their items; those of an iterable one are read.
///
/// @param every_epoch  false: only the coming pass, until it is exhausted (a pass left early is taken up again)
/// @throws TypeError   for a map-style loader without batches
/// @clause DATA-105..109
/// @source Accelerate, skip_first_batches
LOCKSTEP_API DataLoader skip_first_batches(const DataLoader& loader, std::int64_t num_batches, bool every_epoch = true);

/// The same for a prepared loader: `num_batches` steps are skipped, on every rank alike, and the order is the one of
/// the original's current `iteration`. A loop needs it in a variable: `for (.. : *skip_first_batches(..))` would go
/// through a loader that is gone.
LOCKSTEP_API std::shared_ptr<PreparedDataLoader> skip_first_batches(const PreparedDataLoader& loader,
                                                                    std::int64_t num_batches, bool every_epoch = true);

}  // namespace lockstep::data
