#include <ATen/Functions.h>

#include <map>
#include <mutex>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/conformance/serve/accelerator_case.h"
#include "lockstep/conformance/serve/items.h"
#include "lockstep/conformance/serve/operations.h"
#include "lockstep/conformance/serve/program_log.h"
#include "lockstep/random/generator.h"
#include "lockstep/random/seeding.h"
#include "lockstep/random/synchronize.h"

namespace lockstep::conformance {
namespace {

constexpr std::int64_t kNumbers = std::int64_t{1} << 31;  // draws are of [0, 2^31)

/// Carries out the verbs of `rng.program`.
class RngProgram {
 public:
  void run(std::vector<Arguments> verbs) {
    for (auto& verb : verbs) {
      const auto name = verb.word("v");
      log_.run(name, [&](Json& entry) { run(name, verb, entry); });
    }
  }
  [[nodiscard]] Json log() const { return log_.to_json(); }

 private:
  void run(const std::string& name, Arguments& verb, Json& entry) {
    if (name == "seed") return seed(verb);
    if (name == "generator") return make_generator(verb);
    if (name == "draw") return draw(verb, entry);
    if (name == "sync") return synchronize(verb);
    if (name == "initial_seed") return initial_seed(verb, entry);
    verb.refuse("v", "a verb of rng.program");
  }

  static void seed(Arguments& verb) {
    const auto seed = verb.integer("seed");
    const random::SeedOptions options{.device_specific = verb.flag("device_specific", false),
                                      .process_index = known_process_index(),
                                      .deterministic = verb.flag("deterministic", false)};
    verb.finish();
    random::set_seed(seed, options);
  }

  // Without an Accelerator the caller of set_seed knows no process index.
  static std::optional<int> known_process_index() {
    if (!state::AcceleratorState::is_initialized()) return std::nullopt;
    return state::AcceleratorState().process_index();
  }

  void make_generator(Arguments& verb) {
    const auto name = verb.word("name");
    const auto seed = verb.integer("seed");
    verb.finish();
    generators_[name] = random::make_generator(seed);
  }

  void draw(Arguments& verb, Json& entry) {
    const auto generator = source(verb);
    const auto count = verb.integer("count", 4);
    verb.finish();
    const auto drawn = at::randint(0, kNumbers, {count}, generator, at::kLong);
    entry["values"] = Indices(drawn.const_data_ptr<std::int64_t>(), drawn.const_data_ptr<std::int64_t>() + count);
  }

  void synchronize(Arguments& verb) {
    const auto words = verb.words("types");
    const auto name = verb.optional_word("generator");
    const auto generator = name ? std::optional(named(*name, verb, "generator")) : std::nullopt;
    verb.finish();
    std::vector<random::RngType> types;
    for (const auto& word : words) types.push_back(random::rng_type_from(word));
    random::synchronize(types, generator, state::PartialState({.cpu = true}).world_group());
  }

  void initial_seed(Arguments& verb, Json& entry) {
    const auto generator = source(verb);
    verb.finish();
    entry["seed"] = generator.current_seed();
  }

  at::Generator source(Arguments& verb) {
    const auto name = verb.word("source", "torch");
    return name == "torch" ? random::default_generator() : named(name, verb, "source");
  }

  at::Generator named(const std::string& name, const Arguments& verb, const std::string& field) const {
    const auto found = generators_.find(name);
    if (found == generators_.end()) verb.refuse(field, "torch, or a generator of the program");
    return found->second;
  }

  ProgramLog log_;
  std::map<std::string, at::Generator> generators_;
};

}  // namespace

Json rng_program(Arguments& arguments, const Case& /*of*/) {
  const bool needs_accelerator = arguments.has("accelerator");
  const auto options = constructor_options_from(arguments.object("accelerator"));
  auto verbs = arguments.objects("program");
  arguments.finish();
  std::optional<Accelerator> accelerator;
  if (needs_accelerator) accelerator.emplace(options);
  RngProgram program;
  ProgramLog::until_failure([&] { program.run(std::move(verbs)); });
  return {{"log", program.log()}};
}

}  // namespace lockstep::conformance
