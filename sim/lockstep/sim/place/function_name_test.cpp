#include "lockstep/sim/place/function_name.h"

#include <gtest/gtest.h>

namespace lockstep::sim {
namespace {

TEST(PlaceFunctionName, DropsArgumentsReturnTypesAndTemplates) {
  EXPECT_EQ(short_function_name("_ZN2my4stepEi"), "my::step");
  EXPECT_EQ(short_function_name("_ZN2my4tmplIiEET_S1_"), "my::tmpl");
  EXPECT_EQ(short_function_name("_ZNK2my1S3runEi"), "my::S::run");
  EXPECT_EQ(short_function_name("main"), "main");
  EXPECT_EQ(short_function_name("capture_through_bare"), "capture_through_bare");
  EXPECT_EQ(short_function_name("std::vector<int, std::allocator<int> > my::Box<int>::get<char>(int) const &"),
            "my::Box::get");
  EXPECT_EQ(short_function_name("tmpl<int>"), "tmpl");
  EXPECT_EQ(short_function_name("step(int) [clone .cold]"), "step");
}

TEST(PlaceFunctionName, DropsUnnamedNamespaces) {
  EXPECT_EQ(short_function_name("_ZN2my12_GLOBAL__N_15innerEv"), "my::inner");
  EXPECT_EQ(short_function_name("(anonymous namespace)::train(int)"), "train");
}

TEST(PlaceFunctionName, SaysWhereALambdaStands) {
  EXPECT_EQ(short_function_name("_ZZN2my3lamEiENK3$_0clEi"), "lambda in my::lam");
  EXPECT_EQ(short_function_name("_ZZN2my4lamhEiENKUliE_clEi"), "lambda in my::lamh");
  EXPECT_EQ(short_function_name("train()::{lambda()#1}::operator()() const::{lambda(int)#2}::operator()(int) const"),
            "lambda in train");
  EXPECT_EQ(short_function_name("auto run(A&)::{lambda(auto:1&)#1}::operator()<B>(B&) const"), "lambda in run");
  EXPECT_EQ(short_function_name("$_0::operator()() const"), "lambda");
}

TEST(PlaceFunctionName, KeepsOperators) {
  EXPECT_EQ(short_function_name("my::F::operator()(int) const"), "my::F::operator()");
  EXPECT_EQ(short_function_name("std::ostream& my::operator<< <int>(std::ostream&, int)"), "my::operator<<");
  EXPECT_EQ(short_function_name("bool my::operator< <int>(A, A)"), "my::operator<");
  EXPECT_EQ(short_function_name("my::P::operator->() const"), "my::P::operator->");
  EXPECT_EQ(short_function_name("my::P::operator bool() const"), "my::P::operator bool");
  EXPECT_EQ(short_function_name("my::operator+(A, B)"), "my::operator+");
  EXPECT_EQ(short_function_name("my::operators(A)"), "my::operators");
}

TEST(PlaceFunctionName, FindsTheLambdaThatWasPassed) {
  EXPECT_EQ(lambda_passed_to("_ZNSt17_Function_handlerIFiiEZN2my4lamhEiEUliE_E9_M_invokeERKSt9_Any_dataOi"),
            "lambda in my::lamh");
  EXPECT_EQ(lambda_passed_to("void std::__invoke_impl<void, train()::{lambda(std::pair<int, int>)#1}&, int>(int)"),
            "lambda in train");
  EXPECT_EQ(lambda_passed_to("std::thread::_State_impl<std::tuple<run(int)::$_0> >::_M_run()"), "lambda in run");
  EXPECT_EQ(lambda_passed_to("train()::{lambda()#1}::operator()() const"), "");
  EXPECT_EQ(lambda_passed_to("train()"), "");
}

// Nothing that a symbol table may hold leads astray.
TEST(PlaceFunctionName, SurvivesOddNames) {
  for (const char* name :
       {"", "operator", "<", ">>>", "(((", "a::", "::", "{lambda(", "x<y", "[[", "operator<<<", "f(g<"}) {
    EXPECT_NO_THROW((void)short_function_name(name)) << name;
    EXPECT_NO_THROW((void)lambda_passed_to(name)) << name;
  }
}

}  // namespace
}  // namespace lockstep::sim
