#include "lockstep/conformance/serve/pass_record.h"

#include "lockstep/conformance/serve/answers.h"
#include "lockstep/value/json.h"

namespace lockstep::conformance {
namespace {

Json empty_record(const PassPlan& plan) {
  Json record;
  for (const char* field : {"batches", "end", "remainder", "state_end", "state_remainder"})
    record[field] = Json::array();
  if (plan.with_values) record["values"] = Json::array();
  return record;
}

void record_step(Json& record, const Value& batch, const ServedLoader& loader, const state::GradientState& gradients,
                 const PassPlan& plan) {
  record["batches"].push_back(loader.items().indices_of(batch));
  record["end"].push_back(loader.end());
  record["remainder"].push_back(loader.remainder());
  record["state_end"].push_back(gradients.end_of_dataloader());
  record["state_remainder"].push_back(gradients.remainder());
  if (plan.with_values) record["values"].push_back(value::to_json(batch));
}

void record_body(Json& record, std::int64_t step, const state::GradientState& gradients, const PassPlan& plan) {
  auto nested = plan.body ? plan.body(step) : std::nullopt;
  if (!nested) return;
  const auto key = std::to_string(step);
  record["nested"][key] = *std::move(nested);
  record["again"][key] = {gradients.end_of_dataloader(), gradients.remainder()};
}

void go_through(Json& record, const ServedLoader& loader, const state::GradientState& gradients, const PassPlan& plan) {
  const auto next = loader.pass();
  for (std::int64_t step = 0; step != plan.stop_after; ++step) {
    const auto batch = next();
    if (!batch) return;
    record_step(record, *batch, loader, gradients, plan);
    record_body(record, step, gradients, plan);
  }
}

}  // namespace

Json record_pass(const ServedLoader& loader, const state::GradientState& gradients, const PassPlan& plan) {
  auto record = empty_record(plan);
  const auto num_slices = static_cast<std::ptrdiff_t>(loader.slices().size());
  const auto outcome = attempt([&] {
    go_through(record, loader, gradients, plan);
    return Json();
  });
  if (plan.with_slices) {
    record["slices"] = std::vector(loader.slices().begin() + num_slices, loader.slices().end());
  }
  if (!outcome.is_null()) {
    record["failed"] = outcome["error"];
    return record;
  }
  record["after"] = {loader.end(), loader.remainder(), gradients.end_of_dataloader(), gradients.remainder(),
                     loader.iteration()};
  return record;
}

}  // namespace lockstep::conformance
