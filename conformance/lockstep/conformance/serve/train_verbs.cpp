#include <ATen/Functions.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/conformance/serve/train_run.h"
#include "lockstep/value/json.h"

namespace lockstep::conformance {

at::Tensor loss_of(const std::string& kind, const at::Tensor& outputs, const Value& batch) {
  if (kind == "sum") return outputs.sum();
  if (kind == "mean") return outputs.mean();
  if (kind == "mse") {  // of equal shapes: at::mse_loss itself divides the gradient of broadcast outputs by too few
    const auto equal = at::broadcast_tensors({outputs, batch["t"].tensor()});
    return at::mse_loss(equal[0], equal[1]);
  }
  throw Unsupported("loss " + kind);
}

at::Tensor input_of(const Value& batch) { return batch.is_dict() ? batch["x"].tensor() : batch.tensor(); }

void TrainRun::accumulate(Arguments& verb, Json& entry) {
  std::vector<modules::ModelEngine*> engines;
  if (verb.has("models")) {
    for (const auto& name : verb.words("models")) engines.push_back(objects_.models.find(name).engine().get());
  } else {
    for (const auto& [name, model] : objects_.models.all()) engines.push_back(model.engine().get());
  }
  auto body = verb.objects("body");
  verb.finish();
  const auto micro_batch = accelerator_.accumulate(engines);
  entry["sync"] = accelerator_.sync_gradients();
  entry["step"] = accelerator_.accumulation_step();
  run(std::move(body));
}

void TrainRun::no_sync(Arguments& verb, Json& /*entry*/) {
  const auto& model = objects_.models.find(verb.optional_word("model"));
  auto body = verb.objects("body");
  verb.finish();
  const auto scope = accelerator_.no_sync(model);
  run(std::move(body));
}

// Until the next backward has run.
void TrainRun::trigger_sync(Arguments& verb, Json& /*entry*/) {
  const auto& model = objects_.models.find(verb.optional_word("model"));
  verb.finish();
  triggered_.push_back(std::make_unique<Accumulation>(accelerator_.trigger_sync_in_backward(model)));
}

void TrainRun::forward(Arguments& verb, Json& entry) {
  const auto& model = objects_.models.find(verb.optional_word("model"));
  const auto given = verb.value("input");
  const auto branch = verb.optional_integer("branch").value_or(0);
  const auto kind = verb.word("loss", "sum"), name = verb.word("as", "loss");
  verb.finish();
  const auto outputs = model(given.is_none() ? input_of(batch_) : given.tensor(), branch);
  const auto loss = loss_of(kind, outputs, batch_);
  losses_[name] = loss;
  entry["loss"] = value::to_json(loss.item<double>());
}

void TrainRun::backward(Arguments& verb, Json& entry) {
  const auto name = verb.word("loss", "loss");
  const bool with_gradients = verb.flag("grads", false);
  const auto loss = losses_.find(name);
  if (loss == losses_.end()) verb.refuse("loss", "a loss of the program");
  verb.finish();
  const auto triggered = std::exchange(triggered_, {});
  accelerator_.backward(loss->second);
  if (!with_gradients) return;
  auto all = Json::object();
  for (const auto& [model_name, model] : objects_.models.all()) {
    const auto own = gradients_of(*model);
    for (const auto& [parameter, gradient] : own.items()) all[model_name + "." + parameter] = gradient;
  }
  entry["grads"] = std::move(all);
}

void TrainRun::clip(Arguments& verb, Json& entry) {
  const auto parameters = objects_.models.find(verb.optional_word("model"))->parameters();
  const auto value = verb.optional_number("value");
  const auto max_norm = verb.optional_number("max_norm");
  const auto norm_type = verb.number("norm_type", 2.0);
  if (value.has_value() == max_norm.has_value()) verb.refuse("max_norm", "max_norm or value");
  verb.finish();
  if (value) {
    accelerator_.clip_grad_value_(parameters, *value);
    entry["norm"] = nullptr;
  } else {
    entry["norm"] = value::to_json(accelerator_.clip_grad_norm_(parameters, *max_norm, norm_type));
  }
}

void TrainRun::step(Arguments& verb, Json& entry) {
  const auto& optimizer = objects_.optimizers.find(verb.optional_word("optimizer"));
  verb.finish();
  const auto before = optimizer.num_steps();
  optimizer.step();
  entry["stepped"] = optimizer.num_steps() != before;
  entry["skipped"] = optimizer.step_was_skipped();
}

void TrainRun::zero_grad(Arguments& verb, Json& /*entry*/) {
  const auto& optimizer = objects_.optimizers.find(verb.optional_word("optimizer"));
  const auto set_to_none = verb.optional_flag("set_to_none");
  verb.finish();
  optimizer.zero_grad(set_to_none);
}

void TrainRun::schedule(Arguments& verb, Json& entry) {
  const auto& scheduler = objects_.schedulers.find(verb.optional_word("scheduler"));
  verb.finish();
  scheduler.step();
  entry["lr"] = scheduler.learning_rates();
  entry["position"] = scheduler.position();
}

void TrainRun::parameters(Arguments& verb, Json& entry) {
  const auto& model = objects_.models.find(verb.optional_word("model"));
  verb.finish();
  entry["params"] = parameters_of(*model);
}

void TrainRun::gradients(Arguments& verb, Json& entry) {
  const auto& model = objects_.models.find(verb.optional_word("model"));
  verb.finish();
  entry["grads"] = gradients_of(*model);
}

void TrainRun::set(Arguments& verb, Json& /*entry*/) {
  const auto sync = verb.optional_flag("sync_gradients");
  const auto steps = verb.optional_small_integer("gradient_accumulation_steps");
  if (!sync && !steps) verb.refuse("sync_gradients", "sync_gradients or gradient_accumulation_steps");
  verb.finish();
  if (sync) accelerator_.set_sync_gradients(*sync);
  if (steps) accelerator_.set_gradient_accumulation_steps(*steps);
}

void TrainRun::fail(Arguments& verb, Json& /*entry*/) {
  const auto ranks = verb.integers("ranks");
  verb.finish();
  if (std::ranges::find(ranks, accelerator_.process_index()) == ranks.end()) return;
  throw RuntimeError("this rank fails, as the program asks");
}

}  // namespace lockstep::conformance
