#include "lockstep/sim/place/function_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::sim {

namespace {

using std::string_view;

std::string demangled(string_view name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : std::string(name);
}

bool starts_with(string_view text, string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// What a character does to the depth of brackets of any kind; an arrow closes nothing.
int nesting(string_view text, std::size_t at) {
  const char c = text[at];
  if (c == '<' || c == '(' || c == '[' || c == '{') return 1;
  if (c == '>' && at > 0 && text[at - 1] == '-') return 0;
  return c == '>' || c == ')' || c == ']' || c == '}' ? -1 : 0;
}

constexpr string_view kOperator = "operator";

// "<<" of "<<<int>(int)".
string_view operator_symbol(string_view text) {
  for (string_view symbol : {"()", "[]", "<=>", "->*", "->", "<<=", ">>=", "<<", ">>", "<=", ">=", "<", ">"}) {
    if (starts_with(text, symbol)) return symbol;
  }
  return text.substr(0, text.find_first_of("<("));
}

// "{lambda(int)#1}" as g++ and clang name it outside of functions with internal linkage, "$_0" as clang does there.
bool is_lambda(string_view component) { return starts_with(component, "{lambda") || starts_with(component, "$_"); }

// Reads a demangled name component by component: "void my::step<int>(int)::{lambda()#1}::operator()() const".
class NameReader {
 public:
  explicit NameReader(string_view text) : rest_(text) {}

  // The components of the qualified name.
  std::vector<std::string> read() {
    while (!rest_.empty()) step();
    end_component();
    return std::move(components_);
  }

 private:
  [[nodiscard]] bool is_word_at(std::size_t at) const {
    return at < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[at])) != 0 || rest_[at] == '_');
  }

  void step() {
    if (component_.empty() && starts_with(rest_, kOperator) && !is_word_at(kOperator.size())) {
      take_operator();
    } else if (starts_with(rest_, "::")) {
      end_component();
      rest_.remove_prefix(2);
    } else if (rest_.front() == '<' || rest_.front() == '[') {  // "[clone .cold]", "[abi:cxx11]"
      rest_.remove_prefix(group_length());
    } else if (rest_.front() == '(') {
      rest_.remove_prefix(group_length());
      skip_qualifiers();
    } else if (rest_.front() == '{') {  // a lambda's own arguments belong to its name
      const auto length = group_length();
      component_ += rest_.substr(0, length);
      rest_.remove_prefix(length);
    } else if (rest_.front() == ' ') {
      forget_return_type();
    } else {
      component_ += rest_.front();
      rest_.remove_prefix(1);
    }
  }

  // What stood before a space was the return type, unless a name's tail comes after it.
  void forget_return_type() {
    rest_.remove_prefix(1);
    if (rest_.empty() || rest_.front() == '[') return;
    components_.clear();
    component_.clear();
  }

  // The symbol of an operator may look like a bracket, and a conversion's type has spaces and colons in it.
  void take_operator() {
    std::size_t length = kOperator.size();
    if (rest_.size() > length && rest_[length] == ' ') {
      length = std::min(rest_.find('(', length), rest_.size());  // "operator bool", "operator new"
    } else {
      length += operator_symbol(rest_.substr(length)).size();
    }
    component_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
    if (starts_with(rest_, " <")) rest_.remove_prefix(1);  // "operator<< <int>"
  }

  void skip_qualifiers() {
    for (string_view qualifier : {" const", " volatile", " &&", " &", " noexcept"}) {
      if (starts_with(rest_, qualifier)) rest_.remove_prefix(qualifier.size());
    }
  }

  // How long the bracketed text at the front is.
  [[nodiscard]] std::size_t group_length() const {
    int depth = 0;
    for (std::size_t at = 0; at < rest_.size(); ++at) {
      depth += nesting(rest_, at);
      if (depth == 0) return at + 1;
    }
    return rest_.size();
  }

  void end_component() {
    if (!component_.empty()) components_.push_back(std::move(component_));
    component_.clear();
  }

  string_view rest_;
  std::string component_;
  std::vector<std::string> components_;
};

std::string shortened(string_view declaration) {
  std::string name;
  bool is_in_lambda = false;
  for (const std::string& component : NameReader(declaration).read()) {
    is_in_lambda = is_lambda(component);
    if (is_in_lambda) break;
    name += (name.empty() ? "" : "::") + component;
  }
  if (!is_in_lambda) return name.empty() ? std::string(declaration) : name;
  return name.empty() ? "lambda" : "lambda in " + name;
}

// The template argument that the character at `at` belongs to; empty when it stands in none.
string_view argument_around(string_view text, std::size_t at) {
  auto begin = at;
  for (int depth = 0; begin > 0; --begin) {
    depth -= nesting(text, begin - 1);
    if (depth < 0 || (depth == 0 && text[begin - 1] == ',')) break;
  }
  if (begin == 0) return {};
  auto end = at;
  for (int depth = 0; end < text.size(); ++end) {
    depth += nesting(text, end);
    if (depth < 0 || (depth == 0 && text[end] == ',')) break;
  }
  return text.substr(begin, end - begin);
}

}  // namespace

std::string short_function_name(string_view name) { return shortened(demangled(name)); }

std::string lambda_passed_to(string_view name) {
  const std::string text = demangled(name);
  const auto lambda = std::min(text.find("::{lambda"), text.find("::$_"));
  if (lambda == std::string::npos) return "";
  const string_view argument = argument_around(text, lambda);
  return argument.empty() ? "" : shortened(argument);
}

}  // namespace lockstep::sim
