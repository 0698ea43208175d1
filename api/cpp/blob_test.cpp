// SPDX-License-Identifier: Apache-2.0
// Blobs, cache files and numbers, which a plugin stores and reads back, and the graph as ONNX, which it reads from the
// host.
#include "backplane/sdk/blob.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "abi/testing/plugin_under_test.h"
#include "backplane/sdk/file_cache.hpp"
#include "backplane/sdk/onnx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using namespace backplane::sdk;
using backplane::testing::TinyGraph;
using ::testing::HasSubstr;

std::string blob_of(uint32_t version, std::string_view key, std::string_view content) {
  BlobWriter writer(version, key);
  writer.append(content.data(), content.size());
  return std::move(writer).finish();
}
bp_status_t status_of(std::string_view blob, uint32_t version, std::string_view key) {
  try {
    open_blob(blob, version, key);
    return BP_OK;
  } catch (const Error& error) {
    return error.status;
  }
}

TEST(Blob, ReturnsItsContentAsAView) {
  BlobWriter writer(3, "device", 100);
  writer.append(uint32_t{42});
  writer.append("words", 5);
  const std::string blob = std::move(writer).finish();
  const std::string_view content = open_blob(blob, 3, "device");
  EXPECT_EQ(content.substr(4), "words");
  EXPECT_EQ(content.data() + content.size(), blob.data() + blob.size());
  EXPECT_EQ(open_blob(blob_of(3, "", ""), 3, ""), "");
}

TEST(Blob, OfAnotherVersionOrKeyIsStale) {
  const std::string blob = blob_of(3, "device", "words");
  EXPECT_EQ(status_of(blob, 4, "device"), BP_STALE);
  EXPECT_EQ(status_of(blob, 3, "devicE"), BP_STALE);
  EXPECT_EQ(status_of(blob, 3, "dev"), BP_STALE);
  std::string why;
  EXPECT_EQ(check_blob(blob, 4, "device", why), BP_CACHE_RECOMPILE);
  EXPECT_THAT(why, HasSubstr("version 3; this build reads 4"));
  EXPECT_EQ(check_blob(blob, 3, "device", why), BP_CACHE_EXACT);
}

TEST(Blob, DamagedAnywhereIsCorrupt) {
  const std::string blob = blob_of(3, "device", "some words");
  for (size_t place = 0; place < blob.size(); ++place) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = blob;
      damaged[place] = static_cast<char>(damaged[place] ^ (1 << bit));
      EXPECT_EQ(status_of(damaged, 3, "device"), BP_CORRUPT) << place;
    }
  }
  for (size_t size = 0; size < blob.size(); ++size) EXPECT_EQ(status_of(blob.substr(0, size), 3, "device"), BP_CORRUPT);
  EXPECT_EQ(status_of(blob + " ", 3, "device"), BP_CORRUPT);
  std::string why;
  EXPECT_EQ(check_blob("", 3, "device", why), BP_CACHE_UNUSABLE);
}

// Runs the fuzzer's own checks on a valid blob and its prefixes.
TEST(Blob, PassesTheFuzzersFirstInputs) {
  std::string bytes = blob_of(7, "device\ndriver", "content");
  for (size_t i = 0; i <= bytes.size(); ++i)
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size() - i);
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = ::testing::TempDir() + "backplane_file_cache_test_" + std::to_string(::getpid());
    setenv("BACKPLANE_CACHE_DIR", folder.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("BACKPLANE_CACHE_DIR");
    std::filesystem::remove_all(folder);
  }
  std::string folder;
};

TEST_F(Files, AreFoundByEveryByteOfTheirKey) {
  const FileCache cache("one");
  EXPECT_EQ(cache.read("key"), std::nullopt);
  cache.write("key", "content");
  EXPECT_EQ(cache.read("key"), "content");
  EXPECT_EQ(cache.read("kez"), std::nullopt);
  EXPECT_EQ(FileCache("two").read("key"), std::nullopt);
  cache.write("key", "");
  EXPECT_EQ(cache.read("key"), "");
}

TEST_F(Files, DamagedEntriesCountAsMissing) {
  const FileCache cache("one");
  cache.write("key", "content");
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/one")) paths.push_back(entry.path());
  ASSERT_EQ(paths.size(), 1u);
  std::filesystem::resize_file(paths[0], std::filesystem::file_size(paths[0]) - 1);
  EXPECT_EQ(cache.read("key"), std::nullopt);
}

TEST_F(Files, ThatAnyUserCanWriteCountAsMissing) {
  namespace fs = std::filesystem;
  const FileCache cache("one");
  cache.write("key", "content");
  const fs::path inside = folder + "/one";
  EXPECT_EQ(fs::status(inside).permissions(), fs::perms::owner_all);
  const fs::path entry = fs::directory_iterator(inside)->path();
  for (const fs::path& path : {entry, inside}) {
    fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
    EXPECT_EQ(cache.read("key"), std::nullopt) << path;
    fs::permissions(path, fs::perms::others_write, fs::perm_options::remove);
    EXPECT_EQ(cache.read("key"), "content") << path;
  }
}

TEST_F(Files, InAFolderThatAnyUserCanReplaceCountAsMissing) {
  namespace fs = std::filesystem;
  fs::create_directories(folder + "/upper");
  fs::create_directory_symlink(folder + "/upper", folder + "/link");
  setenv("BACKPLANE_CACHE_DIR", (folder + "/link/cache").c_str(), 1);
  const FileCache cache("one");
  cache.write("key", "content");
  for (const char* const inner : {"", "/upper", "/upper/cache"}) {
    fs::permissions(folder + inner, fs::perms::others_write, fs::perm_options::add);
    EXPECT_EQ(cache.read("key"), std::nullopt) << inner;
    fs::permissions(folder + inner, fs::perms::others_write, fs::perm_options::remove);
    EXPECT_EQ(cache.read("key"), "content") << inner;
  }
  fs::permissions(folder + "/upper", fs::perms::others_write | fs::perms::sticky_bit, fs::perm_options::add);
  EXPECT_EQ(cache.read("key"), "content") << "in a shared folder with the sticky bit";
}

TEST_F(Files, AreInFoldersOfThisUserWhateverTheUmask) {
  const mode_t before = ::umask(0);
  setenv("BACKPLANE_CACHE_DIR", (folder + "/upper/cache").c_str(), 1);
  const FileCache cache("one");
  cache.write("key", "content");
  ::umask(before);
  EXPECT_EQ(cache.read("key"), "content");
}

TEST_F(Files, MayBeReadByWhomTheUmaskAllows) {
  const mode_t before = ::umask(022);
  setenv("BACKPLANE_CACHE_DIR", folder.c_str(), 1);
  FileCache("one").write("key", "content");
  ::umask(before);
  size_t entries = 0;
  namespace fs = std::filesystem;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    ++entries;
    EXPECT_EQ(static_cast<unsigned>(entry.status().permissions()), 0644u);
  }
  EXPECT_EQ(entries, 1u);
}

TEST_F(Files, WithoutAFolderThereIsNoCache) {
  setenv("BACKPLANE_CACHE_DIR", "/dev/null/nowhere", 1);
  const FileCache cache("one");
  cache.write("key", "content");
  EXPECT_EQ(cache.read("key"), std::nullopt);
}

TEST(Numbers, KeepSixDigitsInEveryLocale) {
  std::array<double, 2> numbers{};
  ASSERT_TRUE(read_numbers(write_numbers({1.25e9, 3.5e-6}), numbers));
  EXPECT_EQ(numbers[0], 1.25e9);
  EXPECT_EQ(numbers[1], 3.5e-6);
  EXPECT_FALSE(read_numbers("1\n", numbers));
  EXPECT_FALSE(read_numbers("1\nx\n", numbers));
}

class Onnx : public ::testing::Test {
 protected:
  // Writes three pieces, as a host may, unless `status_` makes it fail.
  static bp_status_t serialize(const bp_graph_t*, uint64_t external_above, bp_text_sink_t sink, void* context,
                               bp_error_t* error) {
    if (status_ != BP_OK) return report(error, status_, "the file is gone");
    for (const std::string& piece : {std::string("a"), std::string("bc"), std::to_string(external_above)})
      sink(context, text(piece));
    return BP_OK;
  }
  Graph graph() {
    raw = *tiny.get();
    api = *raw.api;
    api.serialize = serialize;
    raw.api = &api;
    return Graph(&raw);
  }
  static inline bp_status_t status_ = BP_OK;
  TinyGraph tiny;
  bp_graph_t raw{};
  bp_graph_api_t api{};
};

TEST_F(Onnx, ComesInPiecesOrWhole) {
  EXPECT_EQ(onnx(graph(), 7), "abc7");
  EXPECT_EQ(onnx(graph()), "abc" + std::to_string(UINT64_MAX));
}

TEST_F(Onnx, FailuresOfTheHostAndOfTheReaderComeOut) {
  EXPECT_THROW(write_onnx(graph(), [](std::string_view) { throw std::bad_alloc(); }), std::bad_alloc);
  status_ = BP_IO_ERROR;
  try {
    onnx(graph());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status, BP_IO_ERROR);
    EXPECT_EQ(error.text, "the file is gone");
  }
  status_ = BP_OK;
}

}  // namespace
