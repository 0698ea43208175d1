// SPDX-License-Identifier: Apache-2.0
#include "vendor/tolerances.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "journal/case_name.h"
#include "journal/digest.h"

namespace backplane::conform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A folder for this process only, because tests run in parallel.
struct Folder {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("backplane_tolerances_test_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

Tolerances of_text(const std::string& text) {
  const Folder folder;
  write_file(folder.path / "tolerance.json", text);
  return Tolerances::read(folder.path);
}

std::string refusal_of(const std::string& text) {
  try {
    of_text(text);
  } catch (const Usage& error) {
    return error.what();
  }
  return "none";
}

TEST(Tolerances, TheLastEntryThatMatchesCounts) {
  const Tolerances tolerances =
      of_text(R"({"absolute": 0.5, "cases": {"a/*": {"relative": 0.1}, "a/b": {"relative": 0.2, "absolute": 0}}})");
  EXPECT_EQ(tolerances.of("x").relative, Tolerance().relative);
  EXPECT_EQ(tolerances.of("x").absolute, 0.5);
  EXPECT_EQ(tolerances.of("a/c").relative, 0.1);
  EXPECT_EQ(tolerances.of("a/c").absolute, 0.5);
  EXPECT_EQ(tolerances.of("a/c").relative_of_bfloat16, 0.1);
  EXPECT_EQ(tolerances.of("a/b").relative, 0.2);
  EXPECT_EQ(tolerances.of("a/b").absolute, 0);
  EXPECT_THAT(tolerances.unused({"a/c", "x"}), ElementsAre("a/b"));
}

TEST(Tolerances, WithoutAFileTheyAreThoseOfOnnx) {
  EXPECT_EQ(Tolerances::read("/nonexistent").of("x").relative, Tolerance().relative);
}

TEST(Tolerances, ErrorsNameTheEntry) {
  EXPECT_THAT(refusal_of("nonsense"), HasSubstr("not valid JSON"));
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_THAT(refusal_of("{\"cases\": " + deep + "}"), HasSubstr("nested too deeply"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(refusal_of(R"({"relativ": 1})"), HasSubstr("'relativ'"));
  EXPECT_THAT(refusal_of(R"({"relative": -1})"), HasSubstr("'relative' is -1"));
  EXPECT_THAT(refusal_of(R"({"relative": "1"})"), HasSubstr("must be a number"));
  EXPECT_THAT(refusal_of(R"({"cases": 1})"), HasSubstr("'cases' is 1"));
  EXPECT_THAT(refusal_of(R"({"cases": {"a": {"bsolute": 1}}})"), HasSubstr("'a' has the key 'bsolute'"));
}

}  // namespace
}  // namespace backplane::conform
