#pragma once

#include <string>
#include <string_view>

namespace lockstep::sim {

/// A function's name as a report shows it, from its linkage name or its C++ declaration: qualified, without return
/// type, template arguments, argument list and unnamed namespaces.
///
/// `_ZN2my4stepIiEEvT_` and "void my::step<int>(int)" are "my::step"; what is written inside a lambda is in
/// "lambda in my::step". A name that is not C++ comes back as it is.
std::string short_function_name(std::string_view name);

/// The first lambda among the template arguments of a function, "lambda in my::step" for
/// `std::_Function_handler<void (), my::step()::{lambda()#1}>::_M_invoke`; empty when there is none. A lambda that was
/// inlined into the code of a std::function is known by nothing else.
std::string lambda_passed_to(std::string_view name);

}  // namespace lockstep::sim
