#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/conformance/serve/loader_case.h"

namespace lockstep::conformance {

/// A loader of a case as its script sees it: prepared, or as the user wrote it.
class ServedLoader {
 public:
  /// Hands out the pass's next batch; empty once it is exhausted.
  using Pass = std::function<std::optional<Value>()>;

  /// Prepares the loader unless the case says otherwise.
  /// @param record_slices  dispatched batches are cut by a function of the user's, which records its calls
  ServedLoader(LoaderCase loader, Accelerator& accelerator, bool record_slices = false);

  [[nodiscard]] const Items& items() const noexcept { return loader_.items; }
  /// Begins a pass.
  [[nodiscard]] Pass pass() const;
  /// Prepares it, once more if it was; returns whether that gave the same object.
  bool prepare(Accelerator& accelerator);
  /// The loader without its first steps, over the same data.
  [[nodiscard]] ServedLoader skipped(std::int64_t num_steps, const Accelerator& accelerator) const;

  [[nodiscard]] bool is_prepared() const noexcept { return prepared_ != nullptr; }
  // Those below throw AttributeError for a loader that is not prepared.
  void set_epoch(std::int64_t epoch) const;
  [[nodiscard]] Value state_dict() const { return prepared().state_dict(); }
  void load_state_dict(const Value& state) const { prepared().load_state_dict(state); }

  [[nodiscard]] std::int64_t length() const { return prepared_ ? prepared_->length() : loader_.loader.length(); }
  /// Calls of the slice function so far: begin, end, rank and number of ranks.
  [[nodiscard]] const std::vector<Slice>& slices() const { return loader_.record->slices; }

  // Null where the loader has no such attribute.
  [[nodiscard]] Json end() const;
  [[nodiscard]] Json remainder() const;
  [[nodiscard]] Json iteration() const;
  /// len, total_batch_size, total_dataset_length, iteration, reads and epochs_seen, as they are now.
  [[nodiscard]] Json summary() const;

 private:
  [[nodiscard]] data::PreparedDataLoader& prepared() const;

  LoaderCase loader_;
  bool record_slices_;
  std::shared_ptr<data::PreparedDataLoader> prepared_;  // none: it is used as it is
};

using NamedLoaders = std::vector<std::pair<std::string, LoaderCase>>;

/// The loaders of a case by their names, in the order of the case.
class ServedLoaders {
 public:
  ServedLoaders() = default;
  /// Prepares all of them.
  ServedLoaders(NamedLoaders cases, Accelerator& accelerator, bool record_slices = false);

  /// @param name  none: the first one
  /// @throws Unsupported  for a name that the case does not have
  [[nodiscard]] ServedLoader& find(const std::optional<std::string>& name);
  [[nodiscard]] const std::vector<std::pair<std::string, ServedLoader>>& all() const noexcept { return loaders_; }

 private:
  std::vector<std::pair<std::string, ServedLoader>> loaders_;
};

/// Reads `loader`, whose name is "main". @throws Unsupported  without one
NamedLoaders loader_named_main(Arguments& arguments);
/// Reads `loaders`; none if it is absent.
NamedLoaders loaders_from(Arguments& arguments);

}  // namespace lockstep::conformance
