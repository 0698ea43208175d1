// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "report/tally.h"
#include "report/write.h"

namespace backplane::conform {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Header header() {
  Header header;
  header.plugin = "/x/libbackplane_acme.so";
  header.identity = {.backend = "acme", .version = "2.1", .device = "acme0"};
  header.profiles = {"core"};
  header.seeds.seed = 7;
  return header;
}

// Writes a journal with these lines and reads it as a run.
Run run_of(const std::vector<std::string>& lines, const std::string& tail = "", Header first = header()) {
  if (first.cases == 0) first.cases = lines.size();
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("backplane_report_test_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream out(folder / "journal.jsonl");
  out << to_json_line(first) << '\n';
  for (const std::string& line : lines) out << line << '\n';
  out << tail;
  out.close();
  Run run = read_run(folder);
  std::filesystem::remove_all(folder);
  return run;
}

std::string line_of(std::string name, State state, std::string reason = "", double worst = 0) {
  Result result{.name = std::move(name), .state = state, .reason = std::move(reason), .seconds = 0.5, .nodes = 1};
  result.worst = worst;
  result.opset = 14;
  if (worst > 0) ++result.errors[bucket_of(worst)];
  if (state != State::kPass) result.repro = "backplane-conform --repro " + result.name;
  if (state == State::kWaived) result.was = State::kFail;
  return to_json_line(result);
}

json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(Report, ReadsTheRun) {
  const auto run = run_of({line_of("b", State::kFail), line_of("a", State::kPass)}, line_of("c", State::kPass));
  EXPECT_EQ(run.title(), "acme 2.1");
  ASSERT_EQ(run.results.size(), 2u);  // a last line without a line feed is ignored
  EXPECT_EQ(run.results[0].name, "a");
  EXPECT_THAT(run.properties(), Contains(std::pair<std::string, std::string>("seed", "7")));
  EXPECT_THROW(read_run("/nonexistent"), Usage);
  EXPECT_THROW(run_of({"nonsense"}), Usage);
}

TEST(Report, CountsByGroupAndByOperator) {
  const auto run = run_of({line_of("ops/Add/float/row/0", State::kPass, "", 0.5),
                           line_of("ops/Add/float/same/0", State::kFail, "off", 3),
                           line_of("ops/Add/float16/same/0", State::kNotSupported), line_of("abi/scan", State::kPass)});
  const json summary = json::parse(summary_json(run));
  EXPECT_EQ(summary["passed"], 2);
  EXPECT_EQ(summary["failed"], 1);
  EXPECT_EQ(summary["not_supported"], 1);
  EXPECT_EQ(summary["total"], 4);
  EXPECT_EQ(summary["levels"], json::array({"L0"}));
  EXPECT_EQ(summary["groups"]["ops"]["total"], 3);
  EXPECT_EQ(summary["facts"]["device"], "acme0");

  const std::string csv = coverage_csv(run);
  EXPECT_THAT(csv, testing::StartsWith("operator,type,opset,pass,fail,crash,timeout,not_supported"));
  EXPECT_THAT(csv, HasSubstr("\nAdd,float,14,1,1,0,0,0,"));
  EXPECT_THAT(csv, HasSubstr(",2,3\n"));  // two cases, and an error of three times the bound

  const std::vector<CoverageRow> rows = tally_coverage(run);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].tally.errors[7], 1u);   // up to half the bound
  EXPECT_EQ(rows[0].tally.errors[10], 1u);  // more than twice the bound
  EXPECT_EQ(rows[1].tally.bad, 1u);         // not supported, although the profile is claimed
}

TEST(Report, JUnitReportsFailuresErrorsAndSkips) {
  Header claims_nothing = header();
  claims_nothing.profiles.clear();
  const std::string xml = junit_xml(
      run_of({line_of("ops/Add/float/a/0", State::kPass), line_of("ops/Add/float/b/0", State::kFail, "<\"&\x01>"),
              line_of("ops/Add/float/c/0", State::kTimeout), line_of("abi/scan", State::kNotSupported),
              line_of("abi/layout", State::kWaived)},
             "", claims_nothing));
  EXPECT_THAT(xml, HasSubstr(R"(<testsuite name="ops" tests="3" failures="1" errors="1" skipped="0" time="1.5)"));
  EXPECT_THAT(xml, HasSubstr(R"(<testsuite name="abi" tests="2" failures="0" errors="0" skipped="2")"));
  EXPECT_THAT(xml,
              HasSubstr(R"(message="&lt;&quot;&amp;?&gt;">backplane-conform --repro ops/Add/float/b/0</failure>)"));
}

TEST(Report, NothingOnThePageEndsItsScript) {
  const std::string evil = "</script><script>alert(1)</script>";
  const std::string page = html_page(run_of({line_of("ops/Add/float/" + evil + "/0", State::kFail, evil)}), nullptr);
  EXPECT_THAT(page, Not(HasSubstr(evil)));
  EXPECT_EQ(data_of(page)["failures"][0]["reason"], evil);
  EXPECT_EQ(page.find("http"), std::string::npos);  // the page loads nothing from outside
}

TEST(Report, PageCountsPassesInWhichTheDeviceRanNoNode) {
  const std::string folded = to_json_line({.name = "ops/Shape/float/a/0", .state = State::kPass});
  const std::string unsupported = to_json_line({.name = "ops/Erf/float/a/0", .state = State::kNotSupported});
  const auto run = run_of({line_of("ops/Add/float/a/0", State::kPass), folded, unsupported});
  EXPECT_EQ(data_of(html_page(run, nullptr))["no_node"], 1);
}

TEST(Report, PageContainsItsData) {
  const json data = data_of(html_page(run_of({line_of("ops/Add/float/a/0", State::kPass, "", 0.4),
                                              line_of("ops/Add/float/b/0", State::kMistrusted, "zeros")}),
                                      nullptr));
  EXPECT_EQ(data["title"], "acme 2.1");
  EXPECT_EQ(data["totals"], json({{"pass", 1}, {"mistrusted", 1}}));
  EXPECT_EQ(data["coverage"][0]["histogram"].size(), data["bins"].size());
  EXPECT_EQ(data["coverage"][0]["histogram"][7], 1);
  EXPECT_EQ(data["failures"][0]["repro"], "backplane-conform --repro ops/Add/float/b/0");
  EXPECT_EQ(data["levels"].size(), 4u);
  EXPECT_TRUE(data["comparison"].is_null());
}

// Every format that names levels also names the filter, the waivers and the expected failures.
TEST(Report, EveryFormatNamesTheCasesThatLimitLevels) {
  Header first = header();
  first.selection = "quick";
  first.filter = "ops/*";
  Result waived{.name = "ops/Add/float/a/0", .state = State::kWaived, .was = State::kFail, .exception = "ops/Add/*"};
  Result expected{
      .name = "ops/Erf/float/a/0", .state = State::kExpectedFail, .was = State::kFail, .exception = "ops/Erf/*"};
  const auto run = run_of({to_json_line(waived), to_json_line(expected)}, "", first);
  const std::string page = html_page(run, nullptr), junit = junit_xml(run), summary = summary_json(run);
  const json data = data_of(page);
  EXPECT_EQ(json::parse(summary)["levels"], json::array());
  for (const char* pattern : {"'ops/*'", "'ops/Add/*'", "'ops/Erf/*'"}) {
    EXPECT_THAT(data["scope"].dump(), HasSubstr(pattern));
    EXPECT_THAT(json::parse(summary)["conditions"].dump(), HasSubstr(pattern));
    EXPECT_THAT(junit, HasSubstr(pattern));
  }
}

std::vector<std::string> names(const std::vector<Change>& changes) {
  std::vector<std::string> names;
  for (const Change& change : changes) names.push_back(change.name);
  return names;
}

TEST(Report, ComparisonSeparatesRegressionsFromImprovements) {
  const auto before = run_of({line_of("a/kept", State::kPass), line_of("a/broken", State::kPass),
                              line_of("a/mended", State::kCrash), line_of("a/dropped", State::kPass),
                              line_of("a/gone", State::kPass), line_of("a/rough", State::kPass, "", 0.2),
                              line_of("a/fine", State::kPass, "", 0.01), line_of("a/still", State::kFail)});
  const auto after = run_of({line_of("a/kept", State::kPass), line_of("a/broken", State::kFail, "off"),
                             line_of("a/mended", State::kPass), line_of("a/dropped", State::kNotSupported),
                             line_of("a/new", State::kFail), line_of("a/rough", State::kPass, "", 0.9),
                             line_of("a/fine", State::kPass, "", 0.09), line_of("a/still", State::kFail)});
  const RunComparison comparison = compare_runs(before, after);
  EXPECT_THAT(names(comparison.worse), ElementsAre("a/broken", "a/dropped"));
  EXPECT_THAT(names(comparison.better), ElementsAre("a/mended"));
  EXPECT_THAT(names(comparison.less_accurate), ElementsAre("a/rough"));
  EXPECT_THAT(names(comparison.appeared), ElementsAre("a/new"));
  EXPECT_THAT(names(comparison.vanished), ElementsAre("a/gone"));
  EXPECT_EQ(comparison.same, 3u);
  EXPECT_FALSE(comparison.holds());
  EXPECT_TRUE(compare_runs(before, before).holds());
  EXPECT_THAT(comparison.to_text(), HasSubstr("a/broken: pass -> fail: off"));
  EXPECT_EQ(json::parse(comparison.to_json())["worse"][0]["after"], "fail");
}

}  // namespace
}  // namespace backplane::conform
