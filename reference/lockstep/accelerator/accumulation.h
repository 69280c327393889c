#pragma once

#include <memory>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/modules/model_engine.h"

namespace lockstep {

/// Whether models synchronise their gradients, for as long as it lives (Accelerator::accumulate, no_sync).
class [[nodiscard, gnu::visibility("default")]] Accumulation {
 public:
  Accumulation(const std::vector<modules::ModelEngine*>& engines, bool synchronise) {
    for (auto* engine : engines) {
      if (engine != nullptr) scopes_.push_back(std::make_unique<modules::SynchronisationScope>(*engine, synchronise));
    }
  }

 private:
  std::vector<std::unique_ptr<modules::SynchronisationScope>> scopes_;
};

}  // namespace lockstep
