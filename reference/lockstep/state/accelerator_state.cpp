#include "lockstep/state/accelerator_state.h"

#include "lockstep/base/error.h"

namespace lockstep::state {

std::string_view to_word(MixedPrecision precision) {
  switch (precision) {
    case MixedPrecision::no: return "no";
    case MixedPrecision::fp8: return "fp8";
    case MixedPrecision::fp16: return "fp16";
    case MixedPrecision::bf16: return "bf16";
  }
  return "";
}

MixedPrecision mixed_precision_from(std::string_view word) {
  for (const auto precision : {MixedPrecision::no, MixedPrecision::fp8, MixedPrecision::fp16, MixedPrecision::bf16}) {
    if (word == to_word(precision)) return precision;
  }
  throw InvalidArgument({.where = "mixed_precision",
                         .expected = "one of no, fp8, fp16, bf16",
                         .got = "'" + std::string(word) + "'",
                         .fix = "Pass one of them, or set ACCELERATE_MIXED_PRECISION to it."});
}

namespace {

PartialStateOptions require_accelerator() {
  if (AcceleratorState::is_initialized()) return {};
  static_cast<void>(PartialState());  // stays initialised, as a side effect that users rely on (STATE-110)
  throw InvalidArgument({.where = "AcceleratorState()",
                         .expected = "an Accelerator on this rank",
                         .got = "none",
                         .fix = "Construct an Accelerator first."});
}

MixedPrecision asked_for(const AcceleratorStateOptions& options, const Environment& environment) {
  if (options.mixed_precision) return mixed_precision_from(*options.mixed_precision);
  return mixed_precision_from(environment.find("ACCELERATE_MIXED_PRECISION").value_or("no"));
}

// Checked before anything is made, so that a failed attempt changes nothing (STATE-111).
PartialStateOptions agreed(const AcceleratorStateOptions& options) {
  auto& rank = RankContext::current();
  const auto precision = asked_for(options, rank.environment());
  if (rank.accelerator && options.mixed_precision && precision != rank.accelerator->mixed_precision) {
    throw InvalidArgument({.where = "Accelerator(mixed_precision)",
                           .expected = "'" + std::string(to_word(rank.accelerator->mixed_precision)) +
                                       "', with which the state is already initialized",
                           .got = "'" + *options.mixed_precision + "'",
                           .fix = "Give every Accelerator of a rank the same, or reset the state between them."});
  }
  if (is_set_up(rank) && options.partial.cpu && !rank.partial->device.is_cpu()) {
    throw InvalidArgument({.where = "Accelerator(cpu=true)",
                           .expected = "a state on the CPU",
                           .got = "one that is already initialized on " + rank.partial->device.str(),
                           .fix = "Pass cpu=true to the first Accelerator, or reset the state before this one."});
  }
  return options.partial;
}

const AcceleratorStateData& data_of(const RankContext& rank, const std::string& attribute) {
  if (rank.accelerator) return *rank.accelerator;
  throw AttributeError({.where = "AcceleratorState." + attribute,
                        .expected = "a state that has been set up",
                        .got = "one that was reset",
                        .fix = "Construct an Accelerator again."});
}

}  // namespace

AcceleratorState::AcceleratorState() : PartialState(require_accelerator()) {}

AcceleratorState::AcceleratorState(const AcceleratorStateOptions& options) : PartialState(agreed(options)) {
  if (rank().accelerator) return;
  rank().accelerator = std::make_shared<AcceleratorStateData>();
  rank().accelerator->mixed_precision = asked_for(options, rank().environment());
  rank().accelerator->dynamo_plugin = options.dynamo_plugin;
}

MixedPrecision AcceleratorState::mixed_precision() const { return data_of(rank(), "mixed_precision").mixed_precision; }

const config::TorchDynamoPlugin& AcceleratorState::dynamo_plugin() const {
  return data_of(rank(), "dynamo_plugin").dynamo_plugin;
}

bool AcceleratorState::is_initialized() { return RankContext::current().accelerator != nullptr; }

void AcceleratorState::reset(bool reset_partial_state) {
  RankContext::current().accelerator.reset();
  if (reset_partial_state) PartialState::reset();
}

std::string AcceleratorState::to_text() const {
  return PartialState::to_text() + "\nMixed precision type: " + std::string(to_word(mixed_precision())) + "\n";
}

}  // namespace lockstep::state
