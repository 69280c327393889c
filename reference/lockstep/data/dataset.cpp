#include "lockstep/data/dataset.h"

namespace lockstep::data {
namespace {

/// Thrown by something that is no std::exception.
struct UnknownError final : std::exception {
  const char* what() const noexcept override { return "an object that is no std::exception was thrown"; }
};

}  // namespace

Dataset::~Dataset() = default;
DatasetError::~DatasetError() = default;

DatasetError::DatasetError(std::int64_t index, const std::exception& cause)
    : Error(kind_of(cause), "dataset.get(" + std::to_string(index) + "): " + brief(cause)), index_(index) {}

Value get_item(Dataset& dataset, std::int64_t index) {
  try {
    return dataset.get(index);
  } catch (const std::exception& error) {
    std::throw_with_nested(DatasetError(index, error));
  } catch (...) {
    std::throw_with_nested(DatasetError(index, UnknownError{}));
  }
}

}  // namespace lockstep::data
