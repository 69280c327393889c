#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "lockstep/base/export.h"
#include "lockstep/data/data_loader.h"
#include "lockstep/state/gradient_state.h"

namespace lockstep::data {

/// A batch that a prepared loader hands out, for whoever counts samples.
struct BatchInfo {
  const Batch& items;  ///< indices into the dataset where known, and how many of them are padding
  std::int64_t epoch;  ///< the loader's `iteration`
  std::int64_t step;   ///< of the pass, from 0; those before a saved place count, and those of skip_batches
  bool is_first;       ///< that this pass hands out
  bool is_last;
};

/// What the passes of a prepared loader have in common.
struct PassOptions {
  std::int64_t skip_batches = 0;                   ///< the first ones of every pass, fetched but not handed out
  bool use_stateful_dataloader = false;            ///< offers state_dict() and load_state_dict()
  std::function<void(const BatchInfo&)> on_batch;  ///< called before a batch is handed out
};

/// A loader that hands one rank its share and tells the gradient state where the data stands. How the data is shared
/// is that of the two kinds: DataLoaderShard, of which every rank reads its own part, and DataLoaderDispatcher, where
/// rank 0 reads for all.
///
/// It reads one batch ahead, so that during the body of the last step, and only then, `end_of_dataloader()` is true.
///
/// A pass, in this order: flags reset, and the loader registered as the active one; set_epoch(iteration); batches.
/// Once it is exhausted, `iteration` grows by one and the registration ends. A loop that is left early does neither:
/// the next pass repeats its order, and the loader stays active until a pass is exhausted. An empty pass registers and
/// unregisters, and does not count.
///
/// Neither copied nor moved: passes and the gradient state refer to it. The gradient state outlives its passes.
///
/// @clause DATA-065..076, DATA-102..112
/// @source Accelerate, DataLoaderStateMixin and DataLoaderAdapter
class LOCKSTEP_API PreparedDataLoader {
 public:
  virtual ~PreparedDataLoader();
  PreparedDataLoader(const PreparedDataLoader&) = delete;
  PreparedDataLoader& operator=(const PreparedDataLoader&) = delete;

  class Pass;
  using Iterator = PassIterator<Pass>;

  /// Begins a pass. Blocks on other ranks if the loader synchronises generators, or is a dispatcher.
  [[nodiscard]] std::unique_ptr<Pass> pass();
  [[nodiscard]] Iterator begin();
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  /// Steps of a pass, without those that skip_first_batches leaves out.
  /// @throws TypeError        for an iterable dataset that does not know its size
  /// @throws InvalidArgument  if more is left out than there is
  [[nodiscard]] std::int64_t length() const { return skip_.left_of(num_steps()); }
  /// Samples of all ranks per step: the loader's batch size with split_batches, times the world size without; unset for
  /// batches of varying size.
  [[nodiscard]] virtual std::optional<std::int64_t> total_batch_size() const = 0;
  /// Items of the dataset before they are shared; of an iterable dataset, those of this rank. @throws TypeError  as
  /// length()
  [[nodiscard]] std::int64_t total_dataset_length() const;

  [[nodiscard]] bool end_of_dataloader() const { return status_->end_of_dataloader; }
  /// Real samples in the last step of all ranks; 0 if there is no padding, -1 if unknown.
  [[nodiscard]] std::int64_t remainder() const { return status_->remainder; }
  /// Exhausted passes so far, or what set_epoch said.
  [[nodiscard]] std::int64_t iteration() const { return iteration_; }
  /// The coming pass is that of `epoch`, here and for the samplers and the dataset. Another epoch than that of a state
  /// that was loaded begins at its start.
  void set_epoch(std::int64_t epoch);

  /// The same loader without its first `num_batches` steps, beginning at this one's `iteration`
  /// (skip_first_batches.h). The original is not changed.
  /// @clause DATA-105..109
  [[nodiscard]] std::shared_ptr<PreparedDataLoader> skip_first_batches(std::int64_t num_batches,
                                                                       bool every_epoch = true) const;

  /// Where the pass stands: a dict of `_num_yielded`, the batches handed out so far, as this rank's inner loader counts
  /// them; `samples`, those of all ranks together, or none if batches vary in size; `_iterator_finished`, true from the
  /// body of the last step on; `iteration`, the pass it is about; `generator`, the state from which the order of that
  /// pass was drawn, or if it was finished that of the next one, or none if no generator decides it.
  /// @throws AttributeError  without use_stateful_dataloader
  /// @clause DATA-110..112
  [[nodiscard]] Value state_dict() const;
  /// The coming pass begins where `state` was taken, which is the start of the next one if that pass was finished; the
  /// passes after it are whole. Also on another number of ranks, since the place is told in samples; where no step of
  /// theirs ends there, the last samples before it come again, with a warning.
  /// @throws AttributeError  without use_stateful_dataloader
  /// @throws KeyError, TypeError, InvalidArgument  for a dict that state_dict() did not make; nothing changes then
  void load_state_dict(const Value& state);

  /// The inner loader, and its accessors (DATA-075).
  [[nodiscard]] const DataLoader& loader() const { return loader_; }
  [[nodiscard]] Dataset& dataset() const { return loader_.dataset(); }
  [[nodiscard]] std::shared_ptr<Sampler> sampler() const { return loader_.sampler(); }
  [[nodiscard]] const std::shared_ptr<BatchSampler>& batch_sampler() const { return loader_.batch_sampler(); }
  [[nodiscard]] std::optional<std::int64_t> batch_size() const { return loader_.batch_size(); }
  [[nodiscard]] bool drop_last() const { return loader_.drop_last(); }
  [[nodiscard]] std::shared_ptr<const state::DataLoaderStatus> status() const { return status_; }

 protected:
  /// Fetches a pass's steps, the same number on every rank where ranks have equally many.
  class Reader {
   public:
    virtual ~Reader();
    /// The next step's data; empty at the end.
    virtual std::optional<LoadedBatch> read() = 0;
    /// Makes of that data what this rank hands out.
    virtual LoadedBatch finish(LoadedBatch data, bool is_last) = 0;
  };

  PreparedDataLoader(DataLoader loader, state::GradientState& gradient_state, PassOptions options);

  /// Steps of a whole pass.
  [[nodiscard]] virtual std::int64_t num_steps() const = 0;
  /// What comes before a pass: may block on other ranks.
  virtual void synchronize() {}
  /// @param first_step  where the pass begins; the steps before are skipped
  virtual std::unique_ptr<Reader> begin_reading(std::int64_t first_step) = 0;
  virtual void forward_epoch(std::int64_t epoch) = 0;
  /// The remainder as it is known when a pass begins.
  [[nodiscard]] virtual std::int64_t known_remainder() const = 0;
  /// Batches of this rank's inner loader that make one step.
  [[nodiscard]] virtual std::int64_t batches_per_step() const { return 1; }
  /// Whether this rank reads data; one that does not records none of it as read.
  [[nodiscard]] virtual bool reads() const { return true; }
  /// Another loader of the same kind, over the same data, with the same options.
  [[nodiscard]] virtual std::shared_ptr<PreparedDataLoader> another() const = 0;

  [[nodiscard]] state::GradientState& gradient_state() const { return gradient_state_; }
  [[nodiscard]] state::DataLoaderStatus& flags() { return *status_; }

 private:
  void require_stateful(const char* where) const;
  [[nodiscard]] Value samples_taken() const;
  [[nodiscard]] std::int64_t step_of(std::int64_t num_yielded, const Value& samples) const;
  [[nodiscard]] at::Tensor checked_order(const Value& generator) const;
  void restore_order();
  [[nodiscard]] at::Tensor order_now() const;
  std::int64_t take_up();
  void end_empty_pass();
  void enter_pass();
  void exhaust_pass();
  void leave_pass();

  /// What state_dict() is about.
  struct Progress {
    std::int64_t num_steps = 0;  // handed out or skipped
    bool finished = false;
    std::int64_t iteration = 0;
    at::Tensor generator;  // where the generator of the order stood when the pass began; undefined: there is none
  };

  DataLoader loader_;
  state::GradientState& gradient_state_;
  PassOptions pass_options_;
  std::shared_ptr<state::DataLoaderStatus> status_ = std::make_shared<state::DataLoaderStatus>();
  std::int64_t iteration_ = 0;
  Skip skip_;                   // of every pass, in steps
  std::int64_t resume_at_ = 0;  // the step at which the coming pass begins, as a state_dict says
  at::Tensor resume_order_;     // and what its order is drawn from
  Progress progress_;
};

/// One time through a rank's share.
class LOCKSTEP_API PreparedDataLoader::Pass {
 public:
  explicit Pass(PreparedDataLoader& owner);

  /// The next batch, on the loader's device; empty once exhausted.
  std::optional<Value> next();

 private:
  LoadedBatch advance();

  PreparedDataLoader& owner_;
  std::unique_ptr<Reader> reader_;
  std::optional<LoadedBatch> ahead_;
  std::int64_t step_;
  bool has_begun_ = false;
  bool over_ = false;
};

}  // namespace lockstep::data
