// SPDX-License-Identifier: Apache-2.0
#include "checks/case.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class CaseTest : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(data_); }
  void TearDown() override { fs::remove_all(data_); }
  void make(const fs::path& name) {
    fs::create_directories(data_ / name);
    std::ofstream(data_ / name / "model.onnx") << "x";
  }
  static std::vector<std::string> names(const std::vector<Case>& cases) {
    std::vector<std::string> names;
    for (const Case& one : cases) names.push_back(one.name);
    return names;
  }
  fs::path data_ = fs::path(testing::TempDir()) / ("backplane_case_test_" + std::to_string(::getpid()));
};

TEST_F(CaseTest, FoundThreeLevelsDeepInOrder) {
  make("node/test_b");
  make("node/test_a");
  make("one/two/three");
  make("one/two/three_too/deep");
  EXPECT_THAT(names(find_cases(data_)), ElementsAre("node/test_a", "node/test_b", "one/two/three"));
}

TEST_F(CaseTest, TheFolderItselfMayBeACase) {
  make("test_a");
  for (const char* spelled : {"test_a", "test_a/", "test_a/.", "test_a//"})
    EXPECT_THAT(names(find_cases(data_ / spelled)), ElementsAre("test_a")) << spelled;
}

TEST_F(CaseTest, FiltersByNameOrItsLastPart) {
  make("node/test_add");
  make("node/test_sub");
  EXPECT_THAT(names(filter(find_cases(data_), "test_a*")), ElementsAre("node/test_add"));
  EXPECT_THAT(names(filter(find_cases(data_), "node/*_sub")), ElementsAre("node/test_sub"));
  EXPECT_THAT(filter(find_cases(data_), std::string(kMaxGlob, '*')), testing::SizeIs(find_cases(data_).size()));
  EXPECT_THROW(filter(find_cases(data_), std::string(kMaxGlob + 1, '*')), Usage);
}

TEST_F(CaseTest, ShardsShareTheCasesOut) {
  for (int i = 0; i < 20; ++i) make("test_" + std::to_string(i));
  const std::vector<Case> all = find_cases(data_);
  std::vector<std::string> dealt = names(select(all, {1, 3}));
  EXPECT_LT(dealt.size(), all.size());
  for (const uint32_t i : {2u, 3u}) {
    for (const std::string& name : names(select(all, {i, 3}))) dealt.push_back(name);
  }
  EXPECT_THAT(dealt, testing::UnorderedElementsAreArray(names(all)));
}

TEST_F(CaseTest, AMissingFolderIsAnError) {
  EXPECT_THROW(find_cases(data_ / "none"), fs::filesystem_error);
}

}  // namespace
}  // namespace backplane::conform
