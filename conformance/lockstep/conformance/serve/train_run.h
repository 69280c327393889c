#pragma once

#include <map>
#include <string>
#include <vector>

#include "lockstep/conformance/serve/program_log.h"
#include "lockstep/conformance/serve/train_objects.h"

namespace lockstep::conformance {

/// A training program as it runs: its verbs, and what they hand to each other.
class TrainRun {
 public:
  explicit TrainRun(TrainObjects& objects) : objects_(objects), accelerator_(objects.accelerator) {}

  /// Carries out the verbs, one after the other.
  void run(std::vector<Arguments> verbs);
  [[nodiscard]] const ProgramLog& log() const noexcept { return log_; }

 private:
  using Method = void (TrainRun::*)(Arguments& verb, Json& entry);
  static Method method_of(Arguments& verb);

  // Data (train_run.cpp).
  void next(Arguments& verb, Json& entry);
  void loop(Arguments& verb, Json& entry);
  bool next_of(ServedLoader& loader, Json& entry);
  void evaluate(Arguments& verb, Json& entry);
  void gather(Arguments& verb, Json& entry);

  // One step (train_verbs.cpp).
  void accumulate(Arguments& verb, Json& entry);
  void no_sync(Arguments& verb, Json& entry);
  void trigger_sync(Arguments& verb, Json& entry);
  void forward(Arguments& verb, Json& entry);
  void backward(Arguments& verb, Json& entry);
  void clip(Arguments& verb, Json& entry);
  void step(Arguments& verb, Json& entry);
  void zero_grad(Arguments& verb, Json& entry);
  void schedule(Arguments& verb, Json& entry);
  void parameters(Arguments& verb, Json& entry);
  void gradients(Arguments& verb, Json& entry);
  void set(Arguments& verb, Json& entry);
  void fail(Arguments& verb, Json& entry);

  TrainObjects& objects_;
  Accelerator& accelerator_;
  ProgramLog log_;
  std::map<const ServedLoader*, ServedLoader::Pass> passes_;  // that have begun
  std::vector<std::unique_ptr<Accumulation>> triggered_;      // until the next backward
  Value batch_;                                               // the last one,
  const Items* items_ = nullptr;                              // and what its items are
  std::map<std::string, at::Tensor> losses_;
};

/// How a loss is made of a model's outputs.
/// @param batch  the last one, whose `t` a mean squared error is against
at::Tensor loss_of(const std::string& kind, const at::Tensor& outputs, const Value& batch);
/// What a model is given of a batch: its `x` for items that are dicts.
at::Tensor input_of(const Value& batch);

}  // namespace lockstep::conformance
