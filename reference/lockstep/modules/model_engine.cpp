#include "lockstep/modules/model_engine.h"

#include "lockstep/modules/forward_precision.h"

namespace lockstep::modules {

ModelEngine::~ModelEngine() = default;
ForwardPrecision::~ForwardPrecision() = default;
ForwardPrecision::Scope::~Scope() = default;

}  // namespace lockstep::modules
