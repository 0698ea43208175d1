// SPDX-License-Identifier: Apache-2.0
#include "journal/merge.h"

#include <gmock/gmock.h>

#include "journal/digest.h"

namespace backplane::conform {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Parts = std::vector<std::pair<std::string, Record>>;

// Twelve cases split into three shards.
Parts good() {
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) names.push_back("ops/x/" + std::to_string(i));
  Parts parts;
  for (uint32_t shard = 1; shard <= 3; ++shard) {
    Record record{.header = {.plugin_sha256 = "p", .shard = {shard, 3}, .cases = 12, .list = sha256_of_list(names)},
                  .results = {}};
    record.header.started = "day " + std::to_string(shard);
    for (const std::string& name : names) {
      if (is_in(name, record.header.shard)) record.results.push_back({name, State::kPass, "", 0, 1});
    }
    parts.emplace_back("part " + std::to_string(shard), record);
  }
  return parts;
}

void expect_refused(const Parts& parts, const std::string& why) {
  EXPECT_THAT([&] { merge(parts); }, ThrowsMessage<std::runtime_error>(HasSubstr(why)));
}

TEST(Merge, MakesOneRun) {
  Parts parts = good();
  std::swap(parts[0], parts[2]);
  parts[1].second.results.push_back({"(end of process)", State::kCrash});
  const Record whole = merge(parts);
  EXPECT_EQ(whole.results.size(), 13u);
  EXPECT_EQ(whole.results[1].name, "ops/x/0");
  EXPECT_EQ(whole.header.shard.count, 1u);
  EXPECT_EQ(whole.header.started, "day 1");
}

TEST(Merge, RefusesMissingResults) {
  Parts parts = good();
  parts[1].second.results.pop_back();
  expect_refused(parts, "1 of 12 cases are missing");
  parts = good();
  parts.erase(parts.begin() + 1);
  expect_refused(parts, "shard 2/3 is missing");
}

TEST(Merge, RefusesDuplicateResults) {
  Parts parts = good();
  parts[1].second.results.push_back(parts[1].second.results[0]);
  expect_refused(parts, "is duplicated");
  parts = good();
  parts[1] = parts[0];
  expect_refused(parts, "shard 1/3 is duplicated");
  parts = good();
  parts[1].second.results.push_back(parts[0].second.results[0]);
  expect_refused(parts, "is duplicated");
}

TEST(Merge, RefusesOtherCases) {
  Parts parts = good();
  parts[1].second.results[0].name = parts[0].second.results[0].name + "'";
  EXPECT_THROW(merge(parts), std::runtime_error);
  parts = good();
  for (auto& [name, part] : parts) part.header.list = "0";
  expect_refused(parts, "are not those of the list 0");
}

TEST(Merge, RefusesPartsOfDifferentRuns) {
  const auto differs = [](const std::string& why, void (*change)(Header & header)) {
    Parts parts = good();
    change(parts[2].second.header);
    expect_refused(parts, "'part 1' and 'part 3' are from different runs: " + why);
  };
  differs("plugin_sha256", [](Header& header) { header.plugin_sha256 = "q"; });
  differs("harness", [](Header& header) { header.harness = "h"; });
  differs("seed", [](Header& header) { header.seeds.seed = 2; });
  differs("nonce_seed", [](Header& header) { header.seeds.nonce = 2; });
  differs("list", [](Header& header) { header.list = "0"; });
  differs("device", [](Header& header) { header.identity.driver = "2"; });
  differs("waivers", [](Header& header) { header.waivers = "w"; });
  differs("shard", [](Header& header) { header.shard.count = 4; });
}

}  // namespace
}  // namespace backplane::conform
