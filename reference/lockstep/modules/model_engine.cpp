#include "lockstep/modules/model_engine.h"

namespace lockstep::modules {

ModelEngine::~ModelEngine() = default;

}  // namespace lockstep::modules
