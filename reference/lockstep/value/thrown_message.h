#pragma once

#include <gtest/gtest.h>

#include <string>

namespace lockstep {

/// The text of the `Error` that `fn` throws; fails the test if it throws none, or another.
template <typename Error, typename Function>
std::string thrown_message(const Function& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace lockstep
