#include "lockstep/accelerator/uneven_inputs.h"

#include <exception>
#include <utility>

namespace lockstep {

UnevenInputs::UnevenInputs(data::EvenBatchesScope even_batches, std::unique_ptr<parallel::Join> join,
                           std::function<void(int)> at_end)
    : even_batches_(std::move(even_batches)),
      join_(std::move(join)),
      at_end_(std::move(at_end)),
      num_uncaught_(std::uncaught_exceptions()) {}

UnevenInputs::~UnevenInputs() noexcept(false) {
  if (std::uncaught_exceptions() == num_uncaught_) finish();
}

void UnevenInputs::finish() {
  even_batches_.reset();
  const auto join = std::move(join_);
  if (join) at_end_(join->finish());
}

}  // namespace lockstep
