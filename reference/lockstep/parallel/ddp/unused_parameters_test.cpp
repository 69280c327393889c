// Parameters that take no part in a loss: refused at the end of the backward, or searched for.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/ddp/ddp_test_support.h"
#include "run_ranks.h"

namespace lockstep::parallel {
namespace {

using test::Branch;
using test::Branches;
using test::Wrapped;

int rank() { return test::world().rank(); }

void expect_error_names(const Wrapped<Branches>& wrapped, Branch branch, const std::string& unused) {
  const auto loss = wrapped.model(at::full({1, 1}, rank() + 1.0), branch).sum();
  const auto text = lockstep::test::message_of<RuntimeError>([&] { wrapped.backward(loss); });
  EXPECT_NE(text.find("no gradient for " + unused), std::string::npos) << text;
  EXPECT_NE(text.find("do not step"), std::string::npos) << text;
  EXPECT_NE(text.find("find_unused_parameters"), std::string::npos) << text;
}

TEST(DDP_005, WithoutTheSearchAnUnusedParameterIsAnErrorThatNamesIt) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Branches>());
    wrapped.backward(wrapped.model(at::ones({1, 1}), Branch::both).sum());  // a step in which all is well
    expect_error_names(wrapped, Branch::a, "b.weight");
  });
}

TEST(CaseJ1, TheFirstBackwardAlreadyFailsAndNamesB) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Branches>());
    expect_error_names(wrapped, Branch::a, "b.weight");
  });
}

TEST(CaseJ3, WithoutTheSearchEachRankNamesTheBranchThatItLeftOut) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Branches>());
    expect_error_names(wrapped, rank() == 0 ? Branch::a : Branch::b, rank() == 0 ? "b.weight" : "a.weight");
  });
}

TEST(CaseJ3, WithTheSearchEveryRankHasTheMean) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Branches>(), {.find_unused_parameters = true});
    for (int step = 0; step < 3; ++step) {
      wrapped.forget_gradients();
      wrapped.backward(wrapped.model(at::ones({1, 1}), rank() == 0 ? Branch::a : Branch::b).sum());
      EXPECT_EQ(wrapped.net->a->weight.grad().item<float>(), 0.5F);
      EXPECT_EQ(wrapped.net->b->weight.grad().item<float>(), 0.5F);
    }
  });
}

TEST(DDP_005, WithTheSearchOneThatNobodyUsesKeepsItsGradient) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Branches>(), {.find_unused_parameters = true});
    const auto backward_through_a = [&wrapped] {
      wrapped.backward(wrapped.model(at::full({1, 1}, rank() + 1.0), Branch::a).sum());
    };
    backward_through_a();
    EXPECT_EQ(wrapped.net->a->weight.grad().item<float>(), 1.5F);
    EXPECT_FALSE(wrapped.net->b->weight.grad().defined());
    wrapped.forget_gradients();
    wrapped.net->b->weight.mutable_grad() = at::full({1, 1}, 7.0);
    backward_through_a();
    EXPECT_EQ(wrapped.net->b->weight.grad().item<float>(), 7.0F);
  });
}

TEST(DDP_005, OneThatSomeUseGetsZeroFromTheOthersAndTheDivisorStays) {
  lockstep::test::run_thread_ranks(3, [] {
    const Wrapped wrapped(std::make_shared<Branches>(), {.find_unused_parameters = true});
    wrapped.backward(wrapped.model(at::full({1, 1}, 6.0), rank() == 2 ? Branch::both : Branch::a).sum());
    EXPECT_EQ(wrapped.net->a->weight.grad().item<float>(), 6.0F);
    EXPECT_EQ(wrapped.net->b->weight.grad().item<float>(), 2.0F);
  });
}

TEST(DDP_005, TheBranchMayChangeFromStepToStep) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Branches>(), {.find_unused_parameters = true});
    for (int step = 0; step < 6; ++step) {
      wrapped.forget_gradients();
      wrapped.backward(wrapped.model(at::ones({1, 1}), (rank() + step) % 2 == 0 ? Branch::a : Branch::both).sum());
      EXPECT_EQ(wrapped.net->a->weight.grad().item<float>(), 1.0F);
      EXPECT_EQ(wrapped.net->b->weight.grad().item<float>(), 0.5F);
    }
  });
}

TEST(DDP_005, TheLossOfAnotherModelIsNoError) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped one(std::make_shared<Branches>());
    const Wrapped other(std::make_shared<Branches>());
    const auto waiting = one.model(at::ones({1, 1}), Branch::both).sum();
    const auto loss = other.model(at::ones({1, 1}), Branch::both).sum();
    loss.backward();
    EXPECT_NO_THROW(one.engine->after_backward());
    EXPECT_NO_THROW(other.engine->after_backward());
    one.backward(waiting);
    EXPECT_EQ(one.net->a->weight.grad().item<float>(), 1.0F);
  });
}

}  // namespace
}  // namespace lockstep::parallel
