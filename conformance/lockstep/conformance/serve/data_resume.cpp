#include "lockstep/conformance/serve/accelerator_case.h"
#include "lockstep/conformance/serve/answers.h"
#include "lockstep/conformance/serve/operations.h"
#include "lockstep/conformance/serve/pass_record.h"
#include "lockstep/conformance/serve/served_loader.h"
#include "lockstep/value/json.h"

namespace lockstep::conformance {

Json data_skip_first_batches(Arguments& arguments, const Case& /*of*/) {
  const auto options = accelerator_options_from(arguments);
  auto cases = loader_named_main(arguments);
  const auto skip = arguments.integer("skip");
  const auto num_passes = arguments.integer("passes", 1), num_first = arguments.integer("first", 0);
  arguments.finish();

  Accelerator accelerator(options);
  ServedLoaders loaders(std::move(cases), accelerator);
  const auto& original = loaders.find(std::nullopt);
  const auto& gradients = accelerator.gradient_state();
  for (std::int64_t pass = 0; pass < num_first; ++pass) record_pass(original, gradients);
  const auto skipped = original.skipped(skip, accelerator);
  Json result = {{"len", attempt([&] { return skipped.length(); })}, {"passes", Json::array()}};
  for (std::int64_t pass = 0; pass < num_passes; ++pass) {
    result["passes"].push_back(record_pass(skipped, gradients));
  }
  result["original"] = record_pass(original, gradients);
  return result;
}

namespace {

enum class Via { skip, state_dict };

Via via_from(Arguments& arguments) {
  const auto word = arguments.word("via", "skip");
  if (word == "skip") return Via::skip;
  if (word == "state_dict") return Via::state_dict;
  arguments.refuse("via", "skip or state_dict");
}

/// A run that is interrupted, and taken up by another one.
struct Resumption {
  AcceleratorOptions options;
  Arguments loader;  // which both runs make anew
  Via via;
  std::int64_t epoch, consume;
};

/// One run: its own Accelerator and loader.
struct Run {
  explicit Run(const Resumption& of) : accelerator(of.options), loader(loader_from_copy(of.loader), accelerator) {}
  static LoaderCase loader_from_copy(Arguments loader) { return loader_from(loader); }
  [[nodiscard]] Json record(const ServedLoader& from, const PassPlan& plan = {}) const {
    return record_pass(from, accelerator.gradient_state(), plan);
  }

  Accelerator accelerator;
  ServedLoader loader;
};

/// Run A. @param state  where the loader stood in the last body
Json interrupted(const Resumption& resumption, std::optional<Value>& state) {
  const Run run(resumption);
  if (run.loader.is_prepared()) run.loader.set_epoch(resumption.epoch);
  PassPlan plan{.stop_after = resumption.consume};
  if (resumption.via == Via::state_dict) {
    plan.body = [&](std::int64_t /*step*/) -> std::optional<Json> {
      state = run.loader.state_dict();
      return std::nullopt;
    };
  }
  return run.record(run.loader, plan);
}

/// Run B: the rest of the pass, and the pass after it.
void resume(const Resumption& resumption, const std::optional<Value>& state, Json& result) {
  const Run run(resumption);
  if (resumption.via == Via::skip) {
    if (run.loader.is_prepared()) run.loader.set_epoch(resumption.epoch);
    const auto rest = run.loader.skipped(resumption.consume, run.accelerator);
    result["resumed"] = run.record(rest);
    result["next"] = run.record(run.loader);
    return;
  }
  if (state) run.loader.load_state_dict(*state);
  result["resumed"] = run.record(run.loader);
  result["next"] = run.record(run.loader);
}

}  // namespace

Json data_resume(Arguments& arguments, const Case& of) {
  const Resumption resumption{.options = accelerator_options_from(arguments),
                              .loader = arguments.object("loader"),
                              .via = via_from(arguments),
                              .epoch = arguments.integer("epoch", 0),
                              .consume = arguments.positive("consume")};
  arguments.finish();
  std::optional<Value> state;
  Json result = {{"before", interrupted(resumption, state)}};
  result["finished"] = state ? value::to_json((*state)["_iterator_finished"]) : Json();
  const CaseScope anew(of.session, of.start);
  resume(resumption, state, result);
  return result;
}

}  // namespace lockstep::conformance
