// SPDX-License-Identifier: Apache-2.0
#include "import/external.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/testing.h"
#include "ir/tensor.h"

namespace backplane::model {
namespace {

using namespace import_test;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Import, ExternalDataIsInTheFolderOfTheModel) {
  const Folder folder;
  const std::vector<float> numbers_in{1, 2, 3, 4};
  folder.write("weights/w.bin", std::string(reinterpret_cast<const char*>(numbers_in.data()), 16));
  const std::string path = folder.write(
      "m.onnx",
      relu({}, {external_tensor("w", kFloat, {2}, {{"location", "weights/w.bin"}, {"offset", "8"}, {"length", "8"}})}));
  auto result = open(path);
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  const Weight& w = g.weights[find_value(g, "w")->weight];
  EXPECT_THAT(*numbers(w), ElementsAre(3, 4));
  EXPECT_EQ(w.file_offset, 8u);
  EXPECT_THAT(w.file, HasSubstr("w.bin"));
}

// In the caches of model hubs the files of a snapshot are links into a folder of blobs.
TEST(Import, ExternalDataMayBeALinkIntoTheFolderThatTheModelIsALinkInto) {
  const Folder folder;
  const std::vector<float> numbers_in{1, 2};
  folder.write("blobs/b1", std::string(reinterpret_cast<const char*>(numbers_in.data()), 8));
  folder.write("blobs/b2", relu({}, {external_tensor("w", kFloat, {2}, {{"location", "m.onnx_data"}})}));
  folder.write("elsewhere/b2", relu({}, {external_tensor("w", kFloat, {2}, {{"location", "m.onnx_data"}})}));
  fs::create_directories(folder.path() / "snapshots/1");
  fs::create_symlink("../../blobs/b1", folder.path() / "snapshots/1/m.onnx_data");
  const fs::path model = folder.path() / "snapshots/1/m.onnx";
  fs::create_symlink("../../blobs/b2", model);
  auto result = open(model.string());
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Graph& g = (*result)->graph;
  EXPECT_THAT(*numbers(g.weights[find_value(g, "w")->weight]), ElementsAre(1, 2));

  fs::remove(model);
  fs::create_symlink("../../elsewhere/b2", model);
  EXPECT_THAT(std::string(open(model.string()).status().text()),
              HasSubstr("put the file itself next to the model, or let the model be a link into the same folder"));
}

TEST(Import, RefusesExternalDataElsewhere) {
  const Folder folder, outside;
  folder.write("in/w.bin", "12345678");
  folder.write("secret.bin", "12345678");
  fs::create_symlink(folder.path() / "secret.bin", folder.path() / "in/link.bin");
  fs::create_directory(folder.path() / "in/dir");
  struct Case {
    std::vector<std::pair<std::string, std::string>> entries;
    bp_status_t code;
    const char* text;
  };
  const Case cases[] = {
      {{{"location", "../secret.bin"}}, BP_INVALID_MODEL, "outside the model's directory"},
      {{{"location", "a/../../secret.bin"}}, BP_INVALID_MODEL, "outside the model's directory"},
      {{{"location", (folder.path() / "secret.bin").string()}}, BP_INVALID_MODEL, "outside the model's directory"},
      {{{"location", "link.bin"}}, BP_INVALID_MODEL, "link that leaves"},
      {{{"location", "dir"}}, BP_INVALID_ARGUMENT, "is a directory"},
      {{{"location", "absent.bin"}}, BP_NOT_FOUND, "absent.bin"},
      {{{"location", ""}}, BP_INVALID_MODEL, "without a location"},
      {{{"location", "w.bin"}, {"offset", "4"}}, BP_INVALID_MODEL, "truncated"},
      {{{"location", "w.bin"}, {"offset", "18446744073709551615"}}, BP_INVALID_MODEL, "offset"},
      {{{"location", "w.bin"}, {"offset", "-8"}}, BP_INVALID_MODEL, "not a whole number"},
      {{{"location", "w.bin"}, {"length", "9"}}, BP_INVALID_MODEL, "needs 8 bytes and has 9"},
  };
  for (const Case& c : cases) {
    auto result = open(folder.write("in/m.onnx", relu({}, {external_tensor("w", kFloat, {2}, c.entries)})));
    ASSERT_FALSE(result.ok()) << c.text;
    EXPECT_EQ(result.status().code(), c.code) << result.status().text();
    EXPECT_THAT(std::string(result.status().text()), AllOf(HasSubstr("tensor 'w'"), HasSubstr(c.text)));
  }
}

}  // namespace
}  // namespace backplane::model
