#include "lockstep/conformance/serve/train_run.h"

#include <ATen/Functions.h>

#include "lockstep/conformance/serve/operations.h"
#include "lockstep/value/json.h"

namespace lockstep::conformance {
namespace {

/// Switches a model to evaluation, and back to what it was.
class EvaluationScope {
 public:
  explicit EvaluationScope(Model& model) : model_(model), was_training_(model.is_training()) { model_.eval(); }
  ~EvaluationScope() { model_.train(was_training_); }
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  Model& model_;
  bool was_training_;
};

}  // namespace

TrainRun::Method TrainRun::method_of(Arguments& verb) {
  static const std::map<std::string, Method> kVerbs = {{"next", &TrainRun::next},
                                                       {"loop", &TrainRun::loop},
                                                       {"accumulate", &TrainRun::accumulate},
                                                       {"no_sync", &TrainRun::no_sync},
                                                       {"trigger_sync", &TrainRun::trigger_sync},
                                                       {"forward", &TrainRun::forward},
                                                       {"backward", &TrainRun::backward},
                                                       {"clip", &TrainRun::clip},
                                                       {"step", &TrainRun::step},
                                                       {"zero_grad", &TrainRun::zero_grad},
                                                       {"sched", &TrainRun::schedule},
                                                       {"gather", &TrainRun::gather},
                                                       {"eval", &TrainRun::evaluate},
                                                       {"params", &TrainRun::parameters},
                                                       {"grads", &TrainRun::gradients},
                                                       {"set", &TrainRun::set},
                                                       {"fail", &TrainRun::fail}};
  const auto method = kVerbs.find(verb.word("v"));
  if (method == kVerbs.end()) verb.refuse("v", "a verb of train.program");
  return method->second;
}

void TrainRun::run(std::vector<Arguments> verbs) {
  for (auto& verb : verbs) {
    const auto method = method_of(verb);
    log_.run(verb.word("v"), [&](Json& entry) { (this->*method)(verb, entry); });
  }
}

// Takes up the loader's pass, or begins one; an exhausted pass is over.
bool TrainRun::next_of(ServedLoader& loader, Json& entry) {
  auto& pass = passes_[&loader];
  if (!pass) pass = loader.pass();
  auto batch = pass();
  if (!batch) pass = nullptr;
  const auto& gradients = accelerator_.gradient_state();
  entry["batch"] = batch ? Json(loader.items().indices_of(*batch)) : Json();
  entry["end"] = gradients.end_of_dataloader();
  entry["remainder"] = gradients.remainder();
  if (!batch) return false;
  batch_ = *std::move(batch);
  items_ = &loader.items();
  return true;
}

void TrainRun::next(Arguments& verb, Json& entry) {
  auto& loader = objects_.loaders.find(verb.optional_word("loader"));
  verb.finish();
  next_of(loader, entry);
}

void TrainRun::loop(Arguments& verb, Json& /*entry*/) {
  auto& loader = objects_.loaders.find(verb.optional_word("loader"));
  const auto num_passes = verb.integer("passes", 1);
  const auto stop_after = verb.optional_integer("stop_after");
  const auto body = verb.objects("body");
  verb.finish();
  for (std::int64_t pass = 0; pass < num_passes; ++pass) {
    for (std::int64_t round = 0; round != stop_after; ++round) {
      bool has_batch = false;
      log_.run("next", [&](Json& entry) { has_batch = next_of(loader, entry); });
      if (!has_batch) break;
      run(body);
    }
    passes_.erase(&loader);  // one that is not exhausted is left
  }
}

void TrainRun::evaluate(Arguments& verb, Json& entry) {
  auto& loader = objects_.loaders.find(verb.optional_word("loader"));
  const auto& model = objects_.models.find(verb.optional_word("model"));
  const auto loss = verb.word("loss", "sum");
  verb.finish();
  const EvaluationScope evaluation(*model);
  const at::NoGradGuard no_gradients;
  entry["losses"] = entry["batches"] = Json::array();
  const auto pass = loader.pass();
  while (const auto batch = pass()) {
    const auto outputs = model(input_of(*batch), 0);
    entry["losses"].push_back(value::to_json(loss_of(loss, outputs, *batch).item<double>()));
    entry["batches"].push_back(loader.items().indices_of(*batch));
  }
}

void TrainRun::gather(Arguments& verb, Json& entry) {
  const auto what = verb.word("what", "batch");
  const bool metrics = verb.flag("metrics", true);
  const auto loss = losses_.find(what);
  const bool has_batch = what == "batch" && items_ != nullptr;
  if (!has_batch && loss == losses_.end()) verb.refuse("what", "batch, or a loss of the program");
  verb.finish();
  const auto value = has_batch ? as_tensor(items_->indices_of(batch_)) : loss->second.detach();
  entry["value"] = value::to_json(metrics ? accelerator_.gather_for_metrics(value) : accelerator_.gather(value));
}

Json train_program(Arguments& arguments, const Case& /*of*/) {
  TrainCase from(arguments);
  auto program = arguments.objects("program");
  arguments.finish();
  TrainObjects objects(std::move(from));
  TrainRun run(objects);
  ProgramLog::until_failure([&] { run.run(std::move(program)); });
  auto parameters = Json::object();
  for (const auto& [name, model] : objects.models.all()) parameters[name] = parameters_of(*model);
  return {{"log", run.log().to_json()}, {"params", std::move(parameters)}};
}

}  // namespace lockstep::conformance
