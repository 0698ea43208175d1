// SPDX-License-Identifier: Apache-2.0
#include "journal/record.h"

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <vector>

namespace backplane::conform {
namespace {

using Json = nlohmann::ordered_json;

// Checks a text against the limits, without storing it. A callback of Json::parse could do the same, but after each
// object it would make the parser search the list that contains the object.
class Checker final : public nlohmann::json_sax<Json> {
 public:
  Checker(size_t most_keys, bool has_reals) : most_keys_(most_keys), has_reals_(has_reals) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override {
    if (!has_reals_ && key_ != "seconds" && key_ != "worst") refuse("'" + key_ + "' is not an integer");
    return value();
  }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(size_t) override {
    value();
    keys_.emplace_back();
    ++depth_;
    return true;
  }
  bool key(string_t& name) override {
    key_ = name;
    if (!keys_.back().insert(name).second) refuse("it has a duplicate key");
    if (keys_.back().size() > most_keys_) refuse("it has too many keys");
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    value();
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  [[noreturn]] static void refuse(const std::string& why) { throw Json::other_error::create(501, why, nullptr); }

  bool value() {
    if (depth_ > kMaxRecordDepth) refuse("it is nested too deeply");
    if (++values_ > kMaxRecordValues) refuse("it has too many values");
    return true;
  }

  const size_t most_keys_;
  const bool has_reals_;
  int depth_ = 0;
  size_t values_ = 0;
  std::string key_;                                    // the last one
  std::vector<std::unordered_set<std::string>> keys_;  // for each enclosing object, the keys seen so far
};

Json parse(std::string_view text, size_t most_keys, bool has_reals) {
  Checker checker(most_keys, has_reals);
  Json::sax_parse(text, &checker);  // if it is not JSON, the next line throws
  return Json::parse(text);
}

}  // namespace

Json parse_record(std::string_view text) {
  return parse(text, kMaxRecordKeys, false);
}

Json parse_settings(std::string_view text) {
  return parse(text, kMaxSettingsKeys, true);
}

}  // namespace backplane::conform
