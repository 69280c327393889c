#include <memory>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/conformance/serve/accelerator_case.h"
#include "lockstep/conformance/serve/operations.h"
#include "lockstep/conformance/serve/state_attributes.h"
#include "lockstep/value/json.h"

namespace lockstep::conformance {

Json state_process(Arguments& arguments, const Case& /*of*/) {
  const auto of = arguments.word("of", "partial");
  const bool needs_accelerator = of == "accelerator" || arguments.has("accelerator");
  const auto options = constructor_options_from(arguments.object("accelerator"));
  arguments.finish();
  if (!needs_accelerator) return read_all(attributes_of(of, state::PartialState({.cpu = true})));
  const Accelerator accelerator(options);
  return read_all(attributes_of(of, accelerator.state()));
}

Json state_split_between_processes(Arguments& arguments, const Case& /*of*/) {
  const auto input = arguments.value("input");
  const bool apply_padding = arguments.flag("apply_padding", false);
  const auto via = arguments.word("via", "state");
  if (via != "state" && via != "accelerator") arguments.refuse("via", "state or accelerator");
  arguments.finish();
  const auto part = via == "state" ? state::PartialState({.cpu = true}).split_between_processes(input, apply_padding)
                                   : Accelerator({.cpu = true}).split_between_processes(input, apply_padding);
  return {{"part", value::to_json(part)}, {"input_after", value::to_json(input)}};
}

}  // namespace lockstep::conformance
