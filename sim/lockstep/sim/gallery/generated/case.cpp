#include "lockstep/sim/gallery/generated/case.h"

#include <utility>

#include "lockstep/sim/gallery/generated/generate.h"

namespace lockstep::sim::generated {

Case make_case(std::uint64_t seed) {
  Case made{.seed = seed, .healthy = generate(seed)};
  Dice dice(~seed);  // other choices than those of the program
  made.fault = random_fault(made.healthy, dice);
  made.program = with_fault(made.healthy, made.fault);
  made.expected = expected_outcomes(made.program);
  return made;
}

}  // namespace lockstep::sim::generated
