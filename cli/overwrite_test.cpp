// SPDX-License-Identifier: Apache-2.0
#include "cli/overwrite.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "cli/usage.h"

namespace backplane::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Overwrite, AnInputIsKeptByAnyName) {
  std::string name = (fs::temp_directory_path() / "overwrite.XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  const std::string model = folder / "model", other = folder / "other";
  std::ofstream(model) << "model";
  std::ofstream(other) << "model";
  fs::create_symlink("model", folder / "symbolic");
  fs::create_hard_link(model, folder / "hard");

  for (const fs::path& output : {fs::path(model), folder / "symbolic", folder / "hard", folder / "." / "model"})
    EXPECT_THROW(keep_inputs("--out", output, {other, model}), Usage) << output;
  EXPECT_THROW(keep_inputs("--out", model, {folder / "symbolic"}), Usage);
  EXPECT_NO_THROW(keep_inputs("--out", model, {other, "none", ""}));
  EXPECT_NO_THROW(keep_inputs("--out", folder / "new", {model}));
  EXPECT_NO_THROW(keep_inputs("--out", folder, {folder}));
  EXPECT_NO_THROW(keep_inputs("--out", "/dev/null", {"/dev/null"}));
  try {
    keep_inputs("--out", model, {model});
  } catch (const Usage& error) {
    EXPECT_THAT(error.what(), HasSubstr("--out would overwrite '" + model + "', which the command reads"));
  }
  fs::remove_all(folder);
}

TEST(Overwrite, MappedFilesAreKnown) {
  std::string name = (fs::temp_directory_path() / "overwrite mapped.XXXXXX").string();
  const int file = mkstemp(name.data());
  ASSERT_EQ(write(file, "text", 4), 4);
  void* const mapped = mmap(nullptr, 4, PROT_READ, MAP_PRIVATE, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_THAT(mapped_files(), testing::Contains(name));
  EXPECT_THROW(keep_inputs("--out", name, mapped_files()), Usage);
  munmap(mapped, 4);
  EXPECT_THAT(mapped_files(), testing::Not(testing::Contains(name)));
  close(file);
  fs::remove(name);
}

}  // namespace
}  // namespace backplane::cli
