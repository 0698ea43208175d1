// SPDX-License-Identifier: Apache-2.0
// Tests the parts that need no ONNXIFI library: the search, and the parsing of versions and texts. The table of older
// operator forms has a test of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backend_info.h"
#include "search.h"

namespace onnxifi_backend {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// ---- versions ------------------------------------------------------------------------------------------------------

TEST(Versions, AreTheNewestOfTheList) {
  EXPECT_EQ(newest_ir_version("3 4 5"), 5u);
  EXPECT_EQ(newest_ir_version("7,3"), 7u);
  EXPECT_EQ(newest_ir_version(""), 0u);
  EXPECT_EQ(newest_ir_version("x -1 99999999999"), 0u);
  EXPECT_THAT(newest_opsets("ai.onnx:7 org.example:1 ai.onnx:9"), ElementsAre(Pair("", 9u), Pair("org.example", 1u)));
  EXPECT_THAT(newest_opsets("8"), ElementsAre(Pair("", 8u)));
  EXPECT_THAT(newest_opsets(": ai.onnx: ai.onnx:x a:0"), IsEmpty());
}

TEST(Texts, KeepValidUtf8) {
  EXPECT_EQ(printable("nnD\u00fcino\u2122 \U0001F600 ~"), "nnD\u00fcino\u2122 \U0001F600 ~");
  EXPECT_EQ(printable("a\x1b\x7f\n"), "a???");
  EXPECT_EQ(printable("\xc2\x9b"), "??");                             // a control character of two bytes
  EXPECT_EQ(printable("\xfc\xff x \xc3"), "?? x ?");                  // another encoding, and a truncated character
  EXPECT_EQ(printable("\xc0\xaf \xe0\x80\xaf"), "?? ???");            // overlong encodings
  EXPECT_EQ(printable("\xed\xa0\x80 \xf4\x90\x80\x80"), "??? ????");  // a surrogate, and a number beyond Unicode
}

// ---- search --------------------------------------------------------------------------------------------------------

class SearchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(VENDORS) / "search" / ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_ / "a");
    fs::create_directories(root_ / "b");
    unsetenv("LD_LIBRARY_PATH");
  }
  std::string file(const std::string& path, const std::string& text = "x") {
    std::ofstream(root_ / path) << text << path;
    return root_ / path;
  }
  // The file names of libraries found below the root, and of all refused paths; refused ones begin with "!".
  std::vector<std::string> found(const std::string& named, const std::string& configuration = "/nowhere") {
    std::vector<std::string> result;
    for (const Found& one : find_libraries(named, configuration.c_str())) {
      const std::string path = one.path;
      if (path.rfind(root_.native(), 0) == 0 || !one.refusal.empty())
        result.push_back((one.refusal.empty() ? "" : "!") + fs::path(path).filename().native());
    }
    return result;
  }
  fs::path root_;
};

TEST_F(SearchTest, TakesLibrariesByTheirNames) {
  file("a/libonnxifi-one.so");
  file("a/libonnxifi-two.so");
  file("a/libonnxifi-two.so.1");
  file("a/libonnxifi.so");
  file("a/libonnxifi-.so");
  EXPECT_THAT(found(root_ / "a"), ElementsAre("libonnxifi-one.so", "libonnxifi-two.so"));
  EXPECT_THAT(found((root_ / "a/libonnxifi-two.so").native() + ":" + (root_ / "a/libonnxifi.so").native()),
              ElementsAre("libonnxifi-two.so", "!libonnxifi.so"));
}

TEST_F(SearchTest, TakesFoldersByTheirNames) {
  for (const char* const name : {"a[1]", "a*", "a?", "a\\", "a{b,c}", "~"}) {
    fs::create_directories(root_ / name);
    file(std::string(name) + "/libonnxifi-one.so");
    EXPECT_THAT(found(root_ / name), ElementsAre("libonnxifi-one.so")) << name;
  }
}

TEST_F(SearchTest, RefusesWhatIsNoFile) {
  fs::create_directories(root_ / "a/libonnxifi-folder.so");
  fs::create_symlink(root_ / "gone", root_ / "a/libonnxifi-gone.so");
  EXPECT_THAT(found((root_ / "a").native() + ":relative/libonnxifi-x.so:" + (root_ / "c").native()),
              ElementsAre("!libonnxifi-folder.so", "!libonnxifi-gone.so", "!libonnxifi-x.so", "!c"));
}

TEST_F(SearchTest, ReportsWhyAPathCannotBeReached) {
  const fs::path below = fs::path(file("a/libonnxifi-one.so")) / "libonnxifi-x.so", loop = root_ / "b/libonnxifi-l.so";
  fs::create_symlink(loop, loop);
  const auto refusal = [](const fs::path& path) { return find_libraries(path.native(), "/nowhere").front().refusal; };
  EXPECT_EQ(refusal(root_ / "c"), (root_ / "c").native() + " does not exist");
  EXPECT_EQ(refusal(below), below.native() + " cannot be reached: Not a directory");
  EXPECT_EQ(refusal(root_ / "b"), loop.native() + " cannot be reached: Too many levels of symbolic links");
}

TEST_F(SearchTest, TakesAFileOnce) {
  fs::create_symlink(file("a/libonnxifi-one.so"), root_ / "b/libonnxifi-other.so");
  EXPECT_THAT(found((root_ / "b").native() + "::" + (root_ / "a").native()), ElementsAre("libonnxifi-other.so"));
}

TEST_F(SearchTest, RefusesWhatAnybodyCanWrite) {
  const fs::path library = file("a/libonnxifi-one.so");
  fs::create_symlink(library, root_ / "b/libonnxifi-link.so");
  const fs::path link = root_ / "b/libonnxifi-link.so";
  for (const fs::path& open : {library, root_ / "a", root_ / "b"}) {
    fs::permissions(open, fs::perms::others_write, fs::perm_options::add);
    EXPECT_THAT(found(link), ElementsAre("!libonnxifi-link.so")) << open;
    EXPECT_EQ(find_libraries(link.native(), "/nowhere").front().refusal,
              link.native() + " is not used: " + open.native() + " is world-writable; chmod o-w fixes that");
    fs::permissions(open, fs::perms::others_write, fs::perm_options::remove);
  }
  EXPECT_THAT(found(link), ElementsAre("libonnxifi-link.so"));
}

TEST_F(SearchTest, ReadsTheConfigurationOfTheSystem) {
  file("a/libonnxifi-one.so");
  file("b/libonnxifi-two.so");
  std::ofstream(root_ / "more.conf") << "# comment\n\n   " << (root_ / "b").native() << "  # here\nnot absolute\n"
                                     << "include " << (root_ / "main.conf").native() << "\n";
  std::ofstream(root_ / "main.conf") << (root_ / "a").native() << "\ninclude none*.conf\tmore*.conf\ninclude\n";
  EXPECT_THAT(found("", root_ / "main.conf"), ElementsAre("libonnxifi-one.so", "libonnxifi-two.so"));
}

}  // namespace
}  // namespace onnxifi_backend
