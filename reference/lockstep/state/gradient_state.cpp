#include "lockstep/state/gradient_state.h"

#include <algorithm>

namespace lockstep::state {

std::shared_ptr<const DataLoaderStatus> GradientState::active_dataloader() const {
  return loaders_.empty() ? nullptr : loaders_.back().lock();  // a loader that is gone reads as none
}

bool GradientState::end_of_dataloader() const {
  const auto loader = active_dataloader();
  return loader && loader->end_of_dataloader;
}

std::int64_t GradientState::remainder() const {
  const auto loader = active_dataloader();
  return loader ? loader->remainder : -1;
}

void GradientState::add_dataloader(const std::shared_ptr<DataLoaderStatus>& loader) { loaders_.emplace_back(loader); }

void GradientState::remove_dataloader(const std::shared_ptr<DataLoaderStatus>& loader) {
  std::erase_if(loaders_, [&loader](const auto& registered) { return registered.lock() == loader; });
}

}  // namespace lockstep::state
