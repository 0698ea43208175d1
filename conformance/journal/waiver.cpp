// SPDX-License-Identifier: Apache-2.0
#include "journal/waiver.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "journal/digest.h"
#include "journal/record.h"

namespace backplane::conform {
namespace {

using Json = nlohmann::ordered_json;

bool has_wildcards(const std::string& glob) {
  return glob.find_first_of("*?[\\") != std::string::npos;
}

bool matches(const std::string& glob, const std::string& text) {
  return has_wildcards(glob) ? fnmatch(glob.c_str(), text.c_str(), 0) == 0 : glob == text;
}

std::vector<uint64_t> numbers_of(const std::string& version) {
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < version.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(version[i])) == 0) continue;
    uint64_t number = 0;
    for (; i < version.size() && std::isdigit(static_cast<unsigned char>(version[i])) != 0; ++i)
      number = number * 10 + static_cast<uint64_t>(version[i] - '0');
    numbers.push_back(number);
  }
  while (!numbers.empty() && numbers.back() == 0) numbers.pop_back();  // so that 1.0 equals 1
  return numbers;
}

// Returns the string at `key`. Throws Usage if it is missing, empty or not a string.
std::string text_of(const Json& entry, const char* key) {
  if (!entry.contains(key)) throw Usage(fmt::format("'{}' is missing", key));
  if (!entry[key].is_string() || entry[key].get<std::string>().empty())
    throw Usage(fmt::format("'{}' is {}: it must be a string that is not empty", key, entry[key].dump()));
  return entry[key];
}

// Returns the glob at `key`. Throws Usage like text_of(), or if it is too long.
std::string glob_of(const Json& entry, const char* key) {
  std::string glob = text_of(entry, key);
  if (glob.size() > kMaxGlob)
    throw Usage(fmt::format("'{}' has {} bytes: it may have at most {}", key, glob.size(), kMaxGlob));
  return glob;
}

// Calls `add` with each entry of the list `key`, which must be the file's only key. Adds the name of the file and the
// number of the entry to the message of any Usage that `add` throws.
void read(const std::string& text, const std::string& whose, const char* key,
          const std::function<void(const Json& entry)>& add) {
  Json json;
  try {
    json = parse_record(text);
  } catch (const Json::exception& error) {
    throw Usage(fmt::format("'{}' is not valid JSON: {}", whose, error.what()));
  }
  if (!json.is_object() || json.size() != 1 || !json.contains(key) || !json[key].is_array())
    throw Usage(fmt::format("'{}' must contain a JSON object whose only member is the list '{}'", whose, key));
  if (json[key].size() > Exceptions::kMaxEntries)
    throw Usage(fmt::format("'{}' has {} entries in '{}', but at most {} are allowed: a pattern may match many cases",
                            whose, json[key].size(), key, Exceptions::kMaxEntries));
  for (size_t i = 0; i < json[key].size(); ++i) {
    try {
      if (!json[key][i].is_object()) throw Usage("it is not an object");
      add(json[key][i]);
    } catch (const Usage& error) {
      throw Usage(fmt::format("'{}', entry {} of '{}': {}", whose, i + 1, key, error.what()));
    }
  }
}

bool is_bad(State state) {
  return state == State::kFail || state == State::kCrash || state == State::kTimeout || state == State::kMistrusted;
}

Result changed(Result result, State state, const std::string& pattern, const std::string& why) {
  result.was = result.state;
  result.exception = pattern;
  result.state = state;
  result.reason = result.reason.empty() ? why : fmt::format("{}: {}", why, result.reason);
  return result;
}

}  // namespace

bool is_between(const std::string& from, const std::string& version, const std::string& to) {
  const std::vector<uint64_t> numbers = numbers_of(version);
  return (from.empty() || numbers_of(from) <= numbers) && (to.empty() || numbers <= numbers_of(to));
}

void Exceptions::count_pattern(bool is_pattern) {
  if (is_pattern && ++patterns_ > kMaxPatterns)
    throw Usage(fmt::format(
        "with this entry, more than {} entries have wildcards: write names of cases without wildcards", kMaxPatterns));
}

void Exceptions::add_waivers(const std::string& json, const std::string& whose) {
  read(json, whose, "waivers", [this](const Json& entry) {
    if (!entry.contains("versions") || !entry["versions"].is_array() || entry["versions"].size() != 2 ||
        !entry["versions"][0].is_string() || !entry["versions"][1].is_string())
      throw Usage("'versions' must be two strings, the first and the last version; an empty string means no limit");
    Waiver waiver = {.device = glob_of(entry, "device"),
                     .from = entry["versions"][0],
                     .to = entry["versions"][1],
                     .cases = glob_of(entry, "case"),
                     .reason = text_of(entry, "reason"),
                     .link = text_of(entry, "link"),
                     .expires = text_of(entry, "expires")};
    if (!is_day(waiver.expires))
      throw Usage(fmt::format("'expires' is '{}', not a valid date (YYYY-MM-DD)", waiver.expires));
    count_pattern(has_wildcards(waiver.device) || has_wildcards(waiver.cases));
    waivers_.push_back(std::move(waiver));
  });
  text_ += "waivers\n" + json;
}

void Exceptions::add_expectations(const std::string& json, const std::string& whose) {
  read(json, whose, "expected_failures", [this](const Json& entry) {
    Expectation expected = {glob_of(entry, "case"), text_of(entry, "reason")};
    count_pattern(has_wildcards(expected.cases));
    expectations_.push_back(std::move(expected));
  });
  text_ += "expectations\n" + json;
}

Exceptions Exceptions::on(const Identity& identity, const std::string& day) const {
  Exceptions left = *this;
  std::erase_if(left.waivers_, [&](const Waiver& waiver) {
    const bool is_device = matches(waiver.device, identity.backend) || matches(waiver.device, identity.device);
    return !is_device || !is_between(waiver.from, identity.version, waiver.to) || waiver.expires < day;
  });
  return left;
}

Result Exceptions::apply(Result result) const {
  if (is_bad(result.state)) {
    for (const Waiver& waiver : waivers_) {
      if (matches(waiver.cases, result.name))
        return changed(std::move(result), State::kWaived, waiver.cases,
                       fmt::format("{} ({})", waiver.reason, waiver.link));
    }
  }
  if (!is_bad(result.state) && result.state != State::kPass) return result;
  for (const Expectation& expected : expectations_) {
    if (!matches(expected.cases, result.name)) continue;
    const State state = result.state == State::kPass ? State::kUnexpectedPass : State::kExpectedFail;
    return changed(std::move(result), state, expected.cases, "expected to fail, " + expected.reason);
  }
  return result;
}

std::vector<std::string> Exceptions::unused(const std::vector<Result>& results) const {
  std::set<std::string_view> waived, expected;
  for (const Result& result : results) {
    if (result.was) (result.state == State::kWaived ? waived : expected).insert(result.exception);
  }
  std::vector<std::string> lines;
  for (const Waiver& one : waivers_) {
    if (waived.count(one.cases) == 0)
      lines.push_back(
          fmt::format("the waiver of '{}' on '{}' until {} is for no failure", one.cases, one.device, one.expires));
  }
  for (const Expectation& one : expectations_) {
    if (expected.count(one.cases) == 0)
      lines.push_back(fmt::format("the expected failure of '{}' is none of the results", one.cases));
  }
  return lines;
}

std::string Exceptions::digest() const {
  return text_.empty() ? "" : sha256(text_);
}

}  // namespace backplane::conform
