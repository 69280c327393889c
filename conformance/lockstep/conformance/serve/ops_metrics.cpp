#include <ATen/Functions.h>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/conformance/serve/accelerator_case.h"
#include "lockstep/conformance/serve/operations.h"
#include "lockstep/conformance/serve/served_loader.h"
#include "lockstep/value/json.h"

namespace lockstep::conformance {
namespace {

/// What is gathered of a batch.
using Quantity = Value (*)(const Items& items, const Value& batch);

Value batch_of(const Items& items, const Value& batch) { return as_tensor(items.indices_of(batch)); }

Value dict_of(const Items& items, const Value& batch) {
  const auto ids = as_tensor(items.indices_of(batch));
  return Value::dict({{"a", ids}, {"b", Value::list({ids * 2})}});
}

Value mean_of(const Items& items, const Value& batch) {
  return as_tensor(items.indices_of(batch)).to(at::kFloat).mean();
}

Value objects_of(const Items& items, const Value& batch) { return Value::list_of(items.indices_of(batch)); }

Value strings_of(const Items& items, const Value& batch) {
  std::vector<Value> strings;
  for (const auto id : items.indices_of(batch)) strings.emplace_back("s" + std::to_string(id));
  return Value::list(std::move(strings));
}

Quantity quantity_from(Arguments& arguments) {
  const auto word = arguments.word("what", "batch");
  if (word == "batch") return batch_of;
  if (word == "dict") return dict_of;
  if (word == "mean") return mean_of;
  if (word == "objects") return objects_of;
  if (word == "strings") return strings_of;
  arguments.refuse("what", "batch, dict, mean, objects or strings");
}

/// How the passes are gone through, and what is asked in each step.
struct MetricsPlan {
  Quantity quantity;
  bool use_gather_object, plain;
  std::optional<std::int64_t> stop_after;
};

/// Gathers over one pass; `last` becomes the last value.
Json gather_pass(const Accelerator& accelerator, const ServedLoader& loader, const MetricsPlan& plan, Value& last) {
  Json record = {{"gathered", Json::array()}};
  if (plan.plain) record["plain"] = Json::array();
  const auto next = loader.pass();
  for (std::int64_t step = 0; step != plan.stop_after; ++step) {
    const auto batch = next();
    if (!batch) break;
    last = plan.quantity(loader.items(), *batch);
    record["gathered"].push_back(value::to_json(accelerator.gather_for_metrics(last, plan.use_gather_object)));
    if (plan.plain) record["plain"].push_back(value::to_json(accelerator.gather(last)));
  }
  return record;
}

}  // namespace

Json ops_gather_for_metrics(Arguments& arguments, const Case& /*of*/) {
  const auto options = accelerator_options_from(arguments);
  auto cases = loader_named_main(arguments);
  const MetricsPlan plan{.quantity = quantity_from(arguments),
                         .use_gather_object = arguments.flag("use_gather_object", false),
                         .plain = arguments.flag("plain", false),
                         .stop_after = arguments.optional_integer("stop_after")};
  const auto num_passes = arguments.integer("passes", 1);
  const bool after = arguments.flag("after", false);
  arguments.finish();

  Accelerator accelerator(options);
  ServedLoaders loaders(std::move(cases), accelerator);
  const auto& loader = loaders.find(std::nullopt);
  Json result = {{"passes", Json::array()}};
  Value last;
  for (std::int64_t pass = 0; pass < num_passes; ++pass) {
    result["passes"].push_back(gather_pass(accelerator, loader, plan, last));
  }
  if (after) result["after"] = value::to_json(accelerator.gather_for_metrics(last, plan.use_gather_object));
  return result;
}

}  // namespace lockstep::conformance
