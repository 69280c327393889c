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
  Script(Accelerator& accelerator, ServedLoaders& loaders, bool with_values)
      : accelerator_(accelerator), loaders_(loaders), with_values_(with_values) {}

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
    entry.refuse("v", "pass, set_epoch or prepare");
  }

  Json pass(Arguments& entry) {
    auto& loader = loaders_.find(entry.word("loader", "main"));
    const auto epoch = entry.optional_integer("set_epoch");
    PassPlan plan{.stop_after = entry.optional_integer("stop_after"), .with_values = with_values_};
    if (entry.optional_integer("skip")) entry.refuse("skip", "null");
    auto nested = entry.object("nested");
    plan.body = [this, &nested](std::int64_t step) -> std::optional<Json> {
      const auto key = std::to_string(step);
      if (!nested.has(key)) return std::nullopt;
      return run(nested.objects(key));
    };
    entry.finish();
    if (epoch) loader.set_epoch(*epoch);
    auto record = record_pass(loader, accelerator_.gradient_state(), plan);
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

  Accelerator& accelerator_;
  ServedLoaders& loaders_;
  bool with_values_;
};

}  // namespace

Json data_loader(Arguments& arguments, const Case& /*of*/) {
  const auto options = accelerator_options_from(arguments);
  auto cases = loaders_from(arguments);
  const bool with_values = arguments.flag("values", false);
  auto script = arguments.objects("script");
  if (!arguments.has("script")) script.emplace_back(Json{{"v", "pass"}}, "args.script[0]");
  arguments.finish();

  Accelerator accelerator(options);
  ServedLoaders loaders(std::move(cases), accelerator);
  auto log = Script(accelerator, loaders, with_values).run(std::move(script));
  Json summaries;
  for (const auto& [name, loader] : loaders.all()) summaries[name] = loader.summary();
  return {{"loaders", std::move(summaries)},
          {"log", std::move(log)},
          {"active", accelerator.gradient_state().num_registrations()}};
}

}  // namespace lockstep::conformance
