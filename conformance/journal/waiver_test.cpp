// SPDX-License-Identifier: Apache-2.0
#include "journal/waiver.h"

#include <gmock/gmock.h>

namespace backplane::conform {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kWaivers = R"({"waivers": [{
  "device": "acme", "versions": ["1.2", "1.10"], "case": "ops/Conv/*", "reason": "rounds early",
  "link": "https://acme.example/42", "expires": "2027-06-30"}]})";
constexpr const char* kExpected = R"({"expected_failures": [{"case": "ops/Erf/*", "reason": "no erf yet"}]})";

Result seen(const std::string& name, State state, const std::string& version = "1.9",
            const std::string& day = "2026-11-20", const std::string& backend = "acme") {
  Exceptions exceptions;
  exceptions.add_waivers(kWaivers, "w.json");
  exceptions.add_expectations(kExpected, "conformance.json");
  return exceptions.on({.backend = backend, .version = version}, day).apply({name, state, "off by two"});
}

TEST(Waiver, ExcusesWhatItNames) {
  const Result result = seen("ops/Conv/float/x", State::kFail);
  EXPECT_EQ(result.state, State::kWaived);
  EXPECT_EQ(result.was, State::kFail);
  EXPECT_EQ(result.reason, "rounds early (https://acme.example/42): off by two");
  EXPECT_EQ(seen("ops/Conv/float/x", State::kCrash).state, State::kWaived);
}

TEST(Waiver, ExcusesOnlyWhatItNames) {
  EXPECT_EQ(seen("ops/Add/float/x", State::kFail).state, State::kFail);
  EXPECT_EQ(seen("ops/Conv/float/x", State::kFail, "1.1").state, State::kFail);
  EXPECT_EQ(seen("ops/Conv/float/x", State::kFail, "1.11").state, State::kFail);
  EXPECT_EQ(seen("ops/Conv/float/x", State::kFail, "1.9", "2027-06-30").state, State::kWaived);
  EXPECT_EQ(seen("ops/Conv/float/x", State::kFail, "1.9", "2027-07-01").state, State::kFail);
  EXPECT_EQ(seen("ops/Conv/float/x", State::kFail, "1.9", "2026-11-20", "other").state, State::kFail);
  EXPECT_EQ(seen("ops/Conv/float/x", State::kPass).state, State::kPass);
  EXPECT_EQ(seen("ops/Conv/float/x", State::kInfraError).state, State::kInfraError);
}

TEST(Waiver, NeedsEveryKey) {
  for (const char* key : {"device", "versions", "case", "reason", "link", "expires"}) {
    std::string text = kWaivers;
    text.replace(text.find(std::string("\"") + key), 2, "\"x");
    Exceptions exceptions;
    EXPECT_THAT([&] { exceptions.add_waivers(text, "w.json"); },
                ThrowsMessage<Usage>(testing::AllOf(HasSubstr(std::string("'") + key), HasSubstr("entry 1"))));
  }
  Exceptions exceptions;
  for (const char* text : {"", "[]", "{}", R"({"waivers": 1})", R"({"waivers": [1]})", R"({"waivers": [], "x": 1})"})
    EXPECT_THROW(exceptions.add_waivers(text, "w.json"), Usage) << text;
}

// Without these limits, verifying a bundle with the largest accepted files would take hours.
TEST(Exceptions, AreAsManyAsAVerifierCanMatch) {
  const auto add = [](size_t entries, size_t bytes, char letter = '*') {
    std::string text = R"({"expected_failures": [)";
    for (size_t i = 0; i < entries; ++i)
      text += std::string(i == 0 ? "" : ",") + R"({"case": ")" + std::string(bytes, letter) + R"(", "reason": "r"})";
    Exceptions().add_expectations(text + "]}", "e.json");
  };
  EXPECT_NO_THROW(add(Exceptions::kMaxPatterns, 1));
  EXPECT_NO_THROW(add(Exceptions::kMaxEntries, 1, 'x'));
  EXPECT_NO_THROW(add(1, kMaxGlob));
  EXPECT_THAT(
      [&] { add(Exceptions::kMaxPatterns + 1, 1); },
      ThrowsMessage<Usage>(HasSubstr("entry 1001 of 'expected_failures': with this entry, more than 1000 entries")));
  EXPECT_THAT([&] { add(Exceptions::kMaxEntries + 1, 1, 'x'); }, ThrowsMessage<Usage>(HasSubstr("has 20001 entries")));
  EXPECT_THAT([&] { add(1, kMaxGlob + 1); }, ThrowsMessage<Usage>(HasSubstr("'case' has 1001 bytes")));
}

TEST(Waiver, ExpiresOnADayOfTheCalendar) {
  const auto add = [](const std::string& day) {
    std::string text = kWaivers;
    text.replace(text.find("2027-06-30"), 10, day);
    Exceptions().add_waivers(text, "w.json");
  };
  for (const char* good : {"2027-06-30", "2028-02-29", "2027-12-31"}) EXPECT_NO_THROW(add(good)) << good;
  for (const char* bad : {"9999-99-99", "2027-06-31", "2027-02-29", "2027-00-10", "2027-10-00", "2027-13-01",
                          "2027-6-30", "2027/06/30", "2027-06-30 ", "never"})
    EXPECT_THAT([&] { add(bad); }, ThrowsMessage<Usage>(HasSubstr("'expires' is '" + std::string(bad)))) << bad;
}

TEST(Expectation, OfAFailureIsCountedApart) {
  EXPECT_EQ(seen("ops/Erf/float/x", State::kFail).state, State::kExpectedFail);
  EXPECT_EQ(seen("ops/Erf/float/x", State::kTimeout).state, State::kExpectedFail);
  EXPECT_EQ(seen("ops/Erf/float/x", State::kPass).state, State::kUnexpectedPass);
  EXPECT_EQ(seen("ops/Erf/float/x", State::kNotSupported).state, State::kNotSupported);
}

TEST(Version, ComparesNumbers) {
  EXPECT_TRUE(is_between("1.9", "1.10", "2"));
  EXPECT_FALSE(is_between("1.10", "1.9", ""));
  EXPECT_TRUE(is_between("1.0", "1", "1.0.0"));
  EXPECT_TRUE(is_between("", "0.1-rc3", ""));
}

}  // namespace
}  // namespace backplane::conform
