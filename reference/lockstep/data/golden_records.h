#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

// What the tests share that compare with fixtures/golden/data_sharding.json, a recording of Accelerate 1.15.
namespace lockstep::data::test {

inline const nlohmann::json& golden() {
  static const nlohmann::json document = [] {
    std::ifstream file(LOCKSTEP_FIXTURES "/golden/data_sharding.json");
    return nlohmann::json::parse(file);
  }();
  return document;
}

/// Compares each record of a section, and says how many there were: fewer than recorded is a failure.
inline void compare_all(const std::string& section, int expected,
                        const std::function<void(const nlohmann::json&)>& compare) {
  int compared = 0;
  for (const auto& record : golden().at(section)) {
    SCOPED_TRACE(record.dump());
    compare(record);
    ++compared;
    if (testing::Test::HasFailure()) break;  // one record says enough
  }
  std::cout << section << ": " << compared << " records compared\n";
  EXPECT_GE(compared, expected);
}

inline bool flag(const nlohmann::json& record, const char* name) { return record.at(name).get<int>() != 0; }

}  // namespace lockstep::data::test
