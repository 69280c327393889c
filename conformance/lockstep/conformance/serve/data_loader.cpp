#include <deque>
#include <optional>

#include "lockstep/conformance/serve/accelerator_case.h"
#include "lockstep/conformance/serve/operations.h"
#include "lockstep/conformance/serve/pass_record.h"
#include "lockstep/conformance/serve/served_loader.h"

namespace lockstep::conformance {
namespace {

/// Carries out a script over the loaders of a case.
class Script {
 public:
  /// @param plan  what of each pass is recorded
  Script(Accelerator& accelerator, ServedLoaders& loaders, PassPlan plan)
      : accelerator_(accelerator), loaders_(loaders), plan_(std::move(plan)) {}

  /// The log: an ENTRY for each entry of the script.
  Json run(std::vector<Arguments> entries) {
    auto log = Json::array();
    for (auto& entry : entries) log.push_back(run(entry));
    return log;
  }

 private:
  Json run(Arguments& entry) {
    const auto verb = entry.word("v");
    if (verb == "pass") return pass(entry);
    if (verb == "set_epoch") return set_epoch(entry);
    if (verb == "prepare") return prepare(entry);
    if (verb == "even_batches") return with_even_batches(entry);
    entry.refuse("v", "pass, set_epoch, prepare or even_batches");
  }

  Json pass(Arguments& entry) {
    auto& loader = loaders_.find(entry.word("loader", "main"));
    const auto epoch = entry.optional_integer("set_epoch");
    const auto skip = entry.optional_integer("skip");
    auto plan = plan_;
    plan.stop_after = entry.optional_integer("stop_after");
    if (plan.stop_after && *plan.stop_after < 1) entry.refuse("stop_after", "at least 1");
    auto nested = entry.object("nested");
    nested.require_names_of_numbers();
    plan.body = [this, &nested](std::int64_t step) -> std::optional<Json> {
      const auto key = std::to_string(step);
      if (!nested.has(key)) return std::nullopt;
      return run(nested.objects(key));
    };
    entry.finish();
    if (epoch) loader.set_epoch(*epoch);
    if (skip) skipped_.push_back(loader.skipped(*skip, accelerator_));
    auto record = record_pass(skip ? skipped_.back() : loader, accelerator_.gradient_state(), plan);
    for (const char* field : {"nested", "again"}) {
      if (entry.has("nested") && !record.contains(field)) record[field] = Json::object();
    }
    return record;
  }

  Json set_epoch(Arguments& entry) {
    auto& loader = loaders_.find(entry.word("loader", "main"));
    const auto epoch = entry.integer("epoch");
    entry.finish();
    loader.set_epoch(epoch);
    return nullptr;
  }

  Json prepare(Arguments& entry) {
    auto& loader = loaders_.find(entry.word("loader", "main"));
    entry.finish();
    return {{"same", loader.prepare(accelerator_)}};
  }

  Json with_even_batches(Arguments& entry) {
    const auto value = entry.optional_flag("value");
    auto body = entry.objects("body");
    entry.finish();
    const auto scope = accelerator_.join_uneven_inputs({.even_batches = value});
    return {{"body", run(std::move(body))}};
  }

  Accelerator& accelerator_;
  ServedLoaders& loaders_;
  PassPlan plan_;
  std::deque<ServedLoader> skipped_;  // which live as long as the script
};

Json run_script(Arguments& arguments, const AcceleratorOptions& options, bool record_slices) {
  if (arguments.has("loader") && arguments.has("loaders"))
    arguments.refuse("loaders", "one loader, or several by name");
  auto cases = arguments.has("loaders") ? loaders_from(arguments) : loader_named_main(arguments);
  const PassPlan plan{.with_values = arguments.flag("values", false), .with_slices = record_slices};
  auto script = arguments.objects("script");
  if (!arguments.has("script")) script.emplace_back(Json{{"v", "pass"}}, "args.script[0]");
  arguments.finish();

  Accelerator accelerator(options);
  ServedLoaders loaders(std::move(cases), accelerator, record_slices);
  auto log = Script(accelerator, loaders, plan).run(std::move(script));
  Json summaries;
  for (const auto& [name, loader] : loaders.all()) summaries[name] = loader.summary();
  return {{"loaders", std::move(summaries)},
          {"log", std::move(log)},
          {"active", accelerator.gradient_state().num_registrations()}};
}

}  // namespace

Json data_loader(Arguments& arguments, const Case& /*of*/) {
  return run_script(arguments, accelerator_options_from(arguments),
                    /*record_slices=*/false);
}

Json data_dispatcher(Arguments& arguments, const Case& /*of*/) {
  auto options = accelerator_options_from(arguments);
  if (!arguments.object("config").has("dispatch_batches")) options.dataloader_config.dispatch_batches = true;
  return run_script(arguments, options, arguments.flag("record_slices", false));
}

}  // namespace lockstep::conformance
