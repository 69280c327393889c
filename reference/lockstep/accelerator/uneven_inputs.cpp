#include "lockstep/accelerator/uneven_inputs.h"

#include <exception>
#include <utility>

namespace lockstep {

UnevenInputs::UnevenInputs(data::EvenBatchesScope even_batches, std::unique_ptr<parallel::Join> join)
    : even_batches_(std::move(even_batches)), join_(std::move(join)), num_uncaught_(std::uncaught_exceptions()) {}

UnevenInputs::~UnevenInputs() noexcept(false) {
  if (join_ && std::uncaught_exceptions() == num_uncaught_) join_->finish();
}

}  // namespace lockstep
