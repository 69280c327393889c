#include "lockstep/data/prepared_data_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/logging.h"
#include "lockstep/data/skip_first_batches.h"
#include "lockstep/random/generator.h"

namespace lockstep::data {
namespace {

constexpr const char* kNumYielded = "_num_yielded";
constexpr const char* kFinished = "_iterator_finished";
constexpr const char* kSamples = "samples";
constexpr const char* kIteration = "iteration";
constexpr const char* kGenerator = "generator";

/// Whatever decides the order of a pass; undefined if nothing does, or a seed and the epoch do.
at::Generator generator_of_order(const DataLoader& loader) {
  const auto sampler = loader.sampler();
  const auto* slot = loader.is_iterable() ? loader.iterable_dataset()->generator()
                     : sampler            ? sampler->generator()
                                          : nullptr;
  return slot != nullptr ? *slot : at::Generator();
}

}  // namespace

PreparedDataLoader::~PreparedDataLoader() = default;
PreparedDataLoader::Reader::~Reader() = default;

PreparedDataLoader::PreparedDataLoader(DataLoader loader, state::GradientState& gradient_state, PassOptions options)
    : loader_(std::move(loader)), gradient_state_(gradient_state), pass_options_(std::move(options)) {}

std::unique_ptr<PreparedDataLoader::Pass> PreparedDataLoader::pass() { return std::make_unique<Pass>(*this); }

PreparedDataLoader::Iterator PreparedDataLoader::begin() { return Iterator(pass()); }

std::int64_t PreparedDataLoader::total_dataset_length() const {
  if (const auto length = loader_.dataset_length()) return *length;
  throw TypeError({.where = "total_dataset_length",
                   .expected = "a dataset that knows its size",
                   .got = "an iterable one that does not",
                   .fix = "Give it a size()."});
}

void PreparedDataLoader::set_epoch(std::int64_t epoch) {
  if (progress_.iteration != epoch) {
    progress_ = {.num_steps = 0, .finished = false, .iteration = epoch};
    resume_at_ = 0;
    resume_order_.reset();
  }
  iteration_ = epoch;
  forward_epoch(epoch);
}

std::shared_ptr<PreparedDataLoader> PreparedDataLoader::skip_first_batches(std::int64_t num_batches,
                                                                           bool every_epoch) const {
  static_cast<void>(data::skip_first_batches(loader_, 0));  // refuses a loader without batches
  auto skipped = another();
  skipped->iteration_ = iteration_;
  skipped->skip_ = skip_.then({.num_batches = num_batches, .every_epoch = every_epoch});
  return skipped;
}

void PreparedDataLoader::require_stateful(const char* where) const {
  if (pass_options_.use_stateful_dataloader) return;
  throw AttributeError({.where = where,
                        .expected = "a loader prepared with use_stateful_dataloader=true",
                        .got = "one without state",
                        .fix = "Set it in the DataLoaderConfiguration, or use skip_first_batches."});
}

Value PreparedDataLoader::state_dict() const {
  require_stateful("state_dict");
  // In the body of a pass's last step its order has been drawn to the end, for one step is read ahead.
  const bool has_begun = progress_.generator.defined() && !progress_.finished;
  return Value::dict({{kNumYielded, reads() ? progress_.num_steps * batches_per_step() : 0},
                      {kSamples, samples_taken()},
                      {kFinished, progress_.finished},
                      {kIteration, progress_.iteration},
                      {kGenerator, has_begun ? progress_.generator : order_now()}});
}

Value PreparedDataLoader::samples_taken() const {
  const auto total = total_batch_size();
  if (!total) return {};
  return reads() ? progress_.num_steps * *total : 0;
}

// Samples come before batches: a job of another number of ranks takes another number of them per step.
std::int64_t PreparedDataLoader::step_of(std::int64_t num_yielded, const Value& samples) const {
  const auto total = total_batch_size();
  if (samples.is_none() || !total || *total < 1) return num_yielded / batches_per_step();
  const auto again = samples.integer() % *total;
  if (again != 0) {
    log::warning(fmt::format("the pass was left after {} samples, where no step of {} ends: {} of them come again",
                             samples.integer(), *total, again));
  }
  return samples.integer() / *total;
}

namespace {

void require_count(const char* name, std::int64_t count) {
  if (count >= 0) return;
  throw InvalidArgument({.where = fmt::format("load_state_dict('{}')", name),
                         .expected = "0 or more",
                         .got = std::to_string(count),
                         .fix = "Load what state_dict() returned."});
}

}  // namespace

void PreparedDataLoader::load_state_dict(const Value& state) {
  require_stateful("load_state_dict");
  const bool finished = state[kFinished].boolean();
  const auto num_yielded = state[kNumYielded].integer();
  const auto& samples = state[kSamples];
  const auto iteration = state[kIteration].integer();
  auto order = checked_order(state[kGenerator]);
  for (const auto& [name, count] : {std::pair(kNumYielded, num_yielded), std::pair(kIteration, iteration),
                                    std::pair(kSamples, samples.is_none() ? 0 : samples.integer())}) {
    require_count(name, count);
  }
  const auto first_step = finished ? 0 : step_of(num_yielded, samples);
  iteration_ = finished ? iteration + 1 : iteration;
  resume_at_ = first_step;
  resume_order_ = std::move(order);
  progress_ = {.num_steps = resume_at_, .finished = false, .iteration = iteration_, .generator = resume_order_};
}

at::Tensor PreparedDataLoader::checked_order(const Value& generator) const {
  const auto now = order_now();
  if (generator.is_none() || !now.defined()) return {};
  const auto& order = generator.tensor();
  const bool fits = order.scalar_type() == now.scalar_type() && order.is_cpu() && order.sizes() == now.sizes();
  if (fits) return order;
  throw InvalidArgument({.where = fmt::format("load_state_dict('{}')", kGenerator),
                         .expected = fmt::format("the {} bytes of a generator's state", now.numel()),
                         .got = to_text(generator),
                         .fix = "Load what state_dict() returned."});
}

// Undefined if no generator decides the order, or nobody asks for a state.
at::Tensor PreparedDataLoader::order_now() const {
  const auto generator = pass_options_.use_stateful_dataloader ? generator_of_order(loader_) : at::Generator();
  return generator.defined() ? random::get_state(generator) : at::Tensor();
}

// Puts the generator where a saved pass began. Before ranks agree on an order: what rank 0 has saved is everybody's.
void PreparedDataLoader::restore_order() {
  if (resume_order_.defined()) random::set_state(generator_of_order(loader_), resume_order_);
}

// Returns the step at which this pass begins.
std::int64_t PreparedDataLoader::take_up() {
  const auto first_step = std::max({resume_at_, skip_.num_batches, std::int64_t{0}});
  progress_ = {.num_steps = first_step, .finished = false, .iteration = iteration_, .generator = order_now()};
  return first_step;
}

void PreparedDataLoader::enter_pass() {
  *status_ = {.end_of_dataloader = false, .remainder = known_remainder()};
  gradient_state_.add_dataloader(status_);
  set_epoch(iteration_);
}

void PreparedDataLoader::exhaust_pass() {
  ++iteration_;
  skip_.exhaust();
  leave_pass();
}

// One of which everything is skipped does not count. One that was taken up behind its last step, as may be on another
// number of ranks, is the end of the pass that was saved.
void PreparedDataLoader::end_empty_pass() {
  if (resume_at_ > 0) return exhaust_pass();
  skip_.exhaust();
  leave_pass();
}

void PreparedDataLoader::leave_pass() { gradient_state_.remove_dataloader(status_); }

PreparedDataLoader::Pass::Pass(PreparedDataLoader& owner) : owner_(owner), step_(owner.resume_at_) {
  owner_.restore_order();
  owner_.synchronize();
  owner_.enter_pass();
  reader_ = owner_.begin_reading(owner_.take_up());
  ahead_ = reader_->read();
  over_ = !ahead_;
  if (over_) owner_.end_empty_pass();
  owner_.resume_at_ = 0;  // only now: a pass whose first read fails can be begun again
  owner_.resume_order_.reset();
}

std::optional<Value> PreparedDataLoader::Pass::next() {
  while (ahead_) {
    over_ = true;  // should reading fail, which ends the pass without exhausting it
    auto current = advance();
    over_ = false;
    const auto step = step_++;
    if (step < owner_.pass_options_.skip_batches) continue;
    const BatchInfo info{.items = current.items,
                         .epoch = owner_.iteration_,
                         .step = step,
                         .is_first = !std::exchange(has_begun_, true),
                         .is_last = !ahead_};
    if (owner_.pass_options_.on_batch) owner_.pass_options_.on_batch(info);
    return std::move(current.value);
  }
  if (!over_) owner_.exhaust_pass();
  over_ = true;
  return std::nullopt;
}

// Hands out the batch that was read ahead, and reads the next one: only then is it known whether this one is the last.
LoadedBatch PreparedDataLoader::Pass::advance() {
  auto current = *std::exchange(ahead_, std::nullopt);
  ahead_ = reader_->read();
  if (!ahead_) owner_.status_->end_of_dataloader = true;
  ++owner_.progress_.num_steps;
  owner_.progress_.finished = !ahead_;
  return reader_->finish(std::move(current), /*is_last=*/!ahead_);
}

}  // namespace lockstep::data
