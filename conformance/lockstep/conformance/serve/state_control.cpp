#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/base/error.h"
#include "lockstep/conformance/serve/accelerator_case.h"
#include "lockstep/conformance/serve/answers.h"
#include "lockstep/conformance/serve/operations.h"
#include "lockstep/conformance/serve/state_attributes.h"

namespace lockstep::conformance {
namespace {

using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Collects what is written to std::cout while it lives.
class PrintedText {
 public:
  PrintedText() : before_(std::cout.rdbuf(text_.rdbuf())) {}
  ~PrintedText() { std::cout.rdbuf(before_); }
  PrintedText(const PrintedText&) = delete;
  PrintedText& operator=(const PrintedText&) = delete;
  [[nodiscard]] bool is_empty() const { return text_.view().empty(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

/// Carries out the calls of `state.control`.
class Control {
 public:
  explicit Control(const AcceleratorOptions& options) : accelerator_(options), state_(accelerator_.state()) {}

  Json run(Arguments& call) {
    using Method = Json (Control::*)(Arguments&);
    static const std::map<std::string, Method> kVerbs = {{"barrier", &Control::barrier},
                                                         {"first", &Control::first},
                                                         {"on", &Control::on},
                                                         {"set_trigger", &Control::set_trigger},
                                                         {"check_trigger", &Control::check_trigger},
                                                         {"print", &Control::print},
                                                         {"accelerator", &Control::another_accelerator},
                                                         {"reset", &Control::reset},
                                                         {"read", &Control::read}};
    const auto verb = kVerbs.find(call.word("v"));
    if (verb == kVerbs.end()) call.refuse("v", "a call of state.control");
    return (this->*verb->second)(call);
  }

 private:
  Json barrier(Arguments& call) {
    const Seconds delay(call.number("delay_s", 0));
    call.finish();
    std::this_thread::sleep_for(delay);
    accelerator_.wait_for_everyone();
    return {{"waited", true}};
  }

  Json first(Arguments& call) {
    const bool local = call.flag("local", false), raises = call.flag("raise", false);
    const Seconds sleep(call.number("sleep_s", 0.2));
    call.finish();
    const auto begin = steady_clock::now();
    return local ? enter(accelerator_.local_main_process_first(), accelerator_.is_local_main_process(), sleep, raises,
                         begin)
                 : enter(accelerator_.main_process_first(), accelerator_.is_main_process(), sleep, raises, begin);
  }

  template <typename Scope>
  static Json enter(const Scope& /*scope*/, bool is_main, Seconds sleep, bool raises, steady_clock::time_point begin) {
    const Seconds waited = steady_clock::now() - begin;
    if (is_main) std::this_thread::sleep_for(sleep);
    if (is_main && raises) throw RuntimeError("the main rank fails inside, as the case asks");
    return {{"entered_s", waited.count()}};
  }

  Json on(Arguments& call) {
    const auto where = call.word("where"), via = call.word("via", "state");
    const auto index = call.optional_small_integer("index").value_or(-1);
    if (via != "state" && via != "accelerator") call.refuse("via", "state or accelerator");
    call.finish();
    bool ran = false;
    const auto mark = [&ran] { ran = true; };
    if (!(via == "state" ? run_by_state(where, index, mark) : run_by_accelerator(where, index, mark))) {
      call.refuse("where", "main, local_main, last, process or local_process");
    }
    return {{"ran", ran}};
  }

  // Both give whether there is such a place.
  bool run_by_state(const std::string& where, int index, const std::function<void()>& function) const {
    if (where == "main") return on_main_process(state_, function)(), true;
    if (where == "local_main") return on_local_main_process(state_, function)(), true;
    if (where == "last") return on_last_process(state_, function)(), true;
    if (where == "process") return on_process(state_, index, function)(), true;
    if (where == "local_process") return on_local_process(state_, index, function)(), true;
    return false;
  }

  bool run_by_accelerator(const std::string& where, int index, const std::function<void()>& function) const {
    if (where == "main") return accelerator_.on_main_process(function)(), true;
    if (where == "local_main") return accelerator_.on_local_main_process(function)(), true;
    if (where == "last") return accelerator_.on_last_process(function)(), true;
    if (where == "process") return accelerator_.on_process(index, function)(), true;
    if (where == "local_process") return accelerator_.on_local_process(index, function)(), true;
    return false;
  }

  Json set_trigger(Arguments& call) {
    const auto ranks = call.integers("ranks");
    call.finish();
    if (std::ranges::find(ranks, accelerator_.process_index()) != ranks.end()) accelerator_.set_trigger();
    return nullptr;
  }

  Json check_trigger(Arguments& call) {
    call.finish();
    return accelerator_.check_trigger();
  }

  Json print(Arguments& call) {
    const auto text = call.word("text");
    call.finish();
    const PrintedText printed;
    accelerator_.print(text);
    return {{"printed", !printed.is_empty()}};
  }

  Json another_accelerator(Arguments& call) {
    const auto options = constructor_options_from(call.object("args"));
    call.finish();
    const Accelerator another(options);
    return read_all(attributes_of("accelerator", another.state()));
  }

  Json reset(Arguments& call) {
    const auto of = call.word("of");
    const bool partial_too = call.flag("partial_too", false);
    call.finish();
    if (of == "partial") {
      state::PartialState::reset();
    } else if (of == "accelerator") {
      state::AcceleratorState::reset(partial_too);
    } else if (of == "gradient") {
      accelerator_.gradient_state() = state::GradientState();
    } else {
      call.refuse("of", "partial, accelerator or gradient");
    }
    return nullptr;
  }

  // Of the state that the script has had since its start: one that was reset meanwhile says so.
  Json read(Arguments& call) {
    const auto of = call.word("of", "partial"), name = call.word("name");
    call.finish();
    return read_one(attributes_of(of, state_), name);
  }

  Accelerator accelerator_;
  state::AcceleratorState state_;
};

}  // namespace

Json state_control(Arguments& arguments, const Case& /*of*/) {
  const auto options = constructor_options_from(arguments.object("accelerator"));
  auto calls = arguments.objects("calls");
  arguments.finish();
  Control control(options);
  auto log = Json::array();
  for (auto& call : calls) log.push_back(attempt([&] { return control.run(call); }));
  return {{"log", std::move(log)}};
}

}  // namespace lockstep::conformance
