// SPDX-License-Identifier: Apache-2.0
// Bad files next to a good one. Each bad file is refused for the expected reason, and the good one still works.
#include "discover/library.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <functional>
#include <vector>

#include "discover/testing.h"
#include "testing/elf_writer.h"
#include "testing/emulated.h"
#include "testing/forks.h"
#include "testing/manifest_writer.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::kFake;
using testing::kPlugins;
using testing::manifest;
using testing::Request;
using testing::Sandbox;
using ::testing::SizeIs;

struct PluginCase {
  const char* fault;
  uint32_t code;
  const char* in_text;
};

class BadPlugin : public ::testing::TestWithParam<PluginCase> {};

TEST_P(BadPlugin, IsRefusedWithItsReason) {
  Sandbox sandbox;
  // Stores the verdict on kFake before the time limit is reduced.
  ASSERT_TRUE(Request().only_given().file(kFake).create().ok());
  if (GetParam().in_text == std::string_view("in time")) sandbox.set("BACKPLANE_SCAN_TIMEOUT_MS", "1500");
  const fs::path library = kPlugins / ("bad_" + std::string(GetParam().fault) + ".so");
  ASSERT_TRUE(fs::exists(library)) << library;
  // An id is expected only with a manifest. Then the refusal names the library, not the file that was passed, so
  // expect_refused cannot check it.
  const std::string id = GetParam().code == BP_REFUSED_ID ? "bad" : "";
  if (id.empty()) return expect_refused(library, GetParam().code, GetParam().in_text);
  const fs::path file = sandbox.write("bad.json", manifest(id, library.string()));
  auto env = Request().only_given().file(file).file(kFake).create();
  ASSERT_TRUE(env.ok());
  EXPECT_EQ((*env)->candidates()[0].refusal, GetParam().code) << (*env)->candidates()[0].text;
  EXPECT_THAT((*env)->candidates()[0].text, HasSubstr(library.string()));
  EXPECT_THAT((*env)->candidates()[0].text, HasSubstr(GetParam().in_text));
  EXPECT_THAT((*env)->devices(), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Faults, BadPlugin,
                         ::testing::Values(PluginCase{"no_symbol", BP_REFUSED_SYMBOL, "bp_plugin_query"},
                                           PluginCase{"null_descriptor", BP_REFUSED_DESCRIPTOR, "NULL"},
                                           PluginCase{"small_descriptor", BP_REFUSED_DESCRIPTOR, "size is 4"},
                                           PluginCase{"version_new", BP_REFUSED_VERSION, "9.0"},
                                           PluginCase{"version_zero", BP_REFUSED_VERSION, "chose 0.0"},
                                           PluginCase{"refuses", BP_REFUSED_BY_PLUGIN, "only on Sundays"},
                                           PluginCase{"refuses_mutely", BP_REFUSED_BY_PLUGIN, "BP_INCOMPATIBLE"},
                                           PluginCase{"wrong_id", BP_REFUSED_ID, "but its manifest states \"bad\""},
                                           PluginCase{"illegal_id", BP_REFUSED_ID, "../Bad"},
                                           PluginCase{"long_id", BP_REFUSED_ID, "1 to 32"},
                                           PluginCase{"no_coverage", BP_REFUSED_DESCRIPTOR, "\"coverage\" is missing"},
                                           PluginCase{"small_table", BP_REFUSED_DESCRIPTOR, "device.size is 16"},
                                           PluginCase{"no_run", BP_REFUSED_DESCRIPTOR, "instance.run"},
                                           PluginCase{"no_create", BP_REFUSED_DESCRIPTOR, "\"create\""},
                                           PluginCase{"create_fails", BP_REFUSED_CREATE, "the device refuses to start"},
                                           PluginCase{"create_mute", BP_REFUSED_CREATE, "BP_UNSUPPORTED"},
                                           PluginCase{"create_nothing", BP_REFUSED_CREATE, "without a backend"},
                                           PluginCase{"count_fails", BP_REFUSED_DEVICES, "BP_PERMISSION_DENIED"},
                                           PluginCase{"no_devices", BP_REFUSED_DEVICES, "nothing is plugged in"},
                                           PluginCase{"many_devices", BP_REFUSED_DEVICES, "4000000000"},
                                           PluginCase{"info_fails", BP_REFUSED_DEVICES, "device 0"},
                                           PluginCase{"sanitizer", BP_REFUSED_SANITIZER, "memory sanitizer"},
                                           PluginCase{"undefined", BP_REFUSED_LINK, "backplane_nobody_has_this"},
                                           PluginCase{"crash_on_load", BP_REFUSED_CRASHED,
                                                      "crashed (SIGABRT) while it was loaded"},
                                           PluginCase{"exit_on_load", BP_REFUSED_CRASHED, "exit code 0"},
                                           PluginCase{"crash_in_query", BP_REFUSED_CRASHED, "while it was loaded"},
                                           PluginCase{"hang_in_query", BP_REFUSED_CRASHED, "in time"},
                                           PluginCase{"crash_in_create", BP_REFUSED_CRASHED, "while it was created"}),
                         [](const auto& info) { return std::string(info.param.fault); });

struct FileCase {
  const char* name;
  uint32_t code;
  const char* in_text;
  // Writes the file. `good` is the content of a working plugin.
  std::function<void(const Sandbox&, const std::string& file, std::string good)> make;
};

Elf64_Ehdr& header(std::string& bytes) {
  return *reinterpret_cast<Elf64_Ehdr*>(bytes.data());
}

Elf64_Phdr& stack_mark(std::string& bytes) {
  auto* const first = reinterpret_cast<Elf64_Phdr*>(bytes.data() + header(bytes).e_phoff);
  return *std::find_if(first, first + header(bytes).e_phnum,
                       [](const Elf64_Phdr& segment) { return segment.p_type == PT_GNU_STACK; });
}

class BadFile : public ::testing::TestWithParam<FileCase> {};

TEST_P(BadFile, IsRefusedBeforeItIsLoaded) {
  const Sandbox sandbox;
  std::ifstream good(kFake, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(good), {}};
  ASSERT_GT(bytes.size(), sizeof(Elf64_Ehdr));
  const std::string name = std::string(GetParam().name) + ".so";
  GetParam().make(sandbox, name, bytes);
  expect_refused(sandbox.root() / name, GetParam().code, GetParam().in_text);
}

INSTANTIATE_TEST_SUITE_P(
    Files, BadFile,
    ::testing::Values(FileCase{"missing", BP_REFUSED_MISSING, "No such file", [](auto&, auto&, auto) {}},
                      FileCase{"folder", BP_REFUSED_NOT_A_LIBRARY, "not a regular file",
                               [](auto& box, auto& file, auto) { fs::create_directory(box.root() / file); }},
                      FileCase{"pipe", BP_REFUSED_NOT_A_LIBRARY, "not a regular file",
                               [](auto& box, auto& file, auto) {
                                 ASSERT_EQ(::mkfifo((box.root() / file).c_str(), 0600), 0);
                               }},
                      FileCase{"empty", BP_REFUSED_NOT_A_LIBRARY, "empty",
                               [](auto& box, auto& file, auto) { box.write(file, ""); }},
                      FileCase{"text", BP_REFUSED_NOT_A_LIBRARY, "ELF",
                               [](auto& box, auto& file, auto) { box.write(file, "INPUT(libbackplane_cpu.so)\n"); }},
                      FileCase{"cut_in_header", BP_REFUSED_NOT_A_LIBRARY, "cut off",
                               [](auto& box, auto& file, auto good) { box.write(file, good.substr(0, 40)); }},
                      FileCase{
                          "cut_in_half", BP_REFUSED_NOT_A_LIBRARY, "cut off",
                          [](auto& box, auto& file, auto good) { box.write(file, good.substr(0, good.size() / 2)); }},
                      FileCase{
                          "cut_at_end", BP_REFUSED_NOT_A_LIBRARY, "cut off",
                          [](auto& box, auto& file, auto good) { box.write(file, good.substr(0, good.size() - 1)); }},
                      FileCase{"huge", BP_REFUSED_NOT_A_LIBRARY, "more than 8 GiB",
                               [](auto& box, auto& file, auto good) {
                                 fs::resize_file(box.write(file, good), uint64_t{9} << 30);  // a hole takes no space
                               }},
                      FileCase{"program_headers_outside", BP_REFUSED_NOT_A_LIBRARY, "cut off",
                               [](auto& box, auto& file, auto good) {
                                 header(good).e_phoff = UINT64_MAX - 100;
                                 box.write(file, good);
                               }},
                      FileCase{"object_file", BP_REFUSED_NOT_A_LIBRARY, "type is 1",
                               [](auto& box, auto& file, auto good) {
                                 header(good).e_type = ET_REL;
                                 box.write(file, good);
                               }},
                      FileCase{"other_processor", BP_REFUSED_ARCHITECTURE, "s390",
                               [](auto& box, auto& file, auto good) {
                                 header(good).e_machine = EM_S390;
                                 box.write(file, good);
                               }},
                      FileCase{"other_word_size", BP_REFUSED_ARCHITECTURE, "64-bit",
                               [](auto& box, auto& file, auto good) {
                                 header(good).e_ident[EI_CLASS] = ELFCLASS32;
                                 box.write(file, good);
                               }},
                      FileCase{"executable_stack", BP_REFUSED_UNTRUSTED, "its PT_GNU_STACK has the flag PF_X",
                               [](auto& box, auto& file, auto good) {
                                 stack_mark(good).p_flags |= PF_X;
                                 box.write(file, good);
                               }},
                      FileCase{"no_stack_mark", BP_REFUSED_UNTRUSTED, "it has no PT_GNU_STACK",
                               [](auto& box, auto& file, auto good) {
                                 stack_mark(good).p_type = PT_NULL;
                                 box.write(file, good);
                               }},
                      FileCase{"other_byte_order", BP_REFUSED_ARCHITECTURE, "little-endian",
                               [](auto& box, auto& file, auto good) {
                                 header(good).e_ident[EI_DATA] = ELFDATA2MSB;
                                 box.write(file, good);
                               }}),
    [](const auto& info) { return std::string(info.param.name); });

struct BombCase {
  const char* name;
  uint16_t segments, dynamic_sections;
  size_t names, name_bytes;
  bool terminated;
  const char* in_text;
  bool table = true;
};

class Bomb : public ::testing::TestWithParam<BombCase> {};

TEST_P(Bomb, IsRefusedWithinMilliseconds) {
  const Sandbox sandbox;
  std::ifstream good(kFake, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(good), {}};
  const BombCase& bomb = GetParam();
  const fs::path file = sandbox.write(std::string(bomb.name) + ".so",
                                      testing::elf_file(header(bytes), bomb.segments, bomb.dynamic_sections, bomb.names,
                                                        bomb.name_bytes, bomb.terminated, bomb.table));
  const std::clock_t begin = std::clock();  // CPU time of this process, because other processes may use the cores
  auto env = Request().only_given().file(file).create();
  const std::clock_t took = std::clock() - begin;
  ASSERT_TRUE(env.ok());
  EXPECT_EQ((*env)->candidates()[0].refusal, BP_REFUSED_NOT_A_LIBRARY) << (*env)->candidates()[0].text;
  EXPECT_THAT((*env)->candidates()[0].text, HasSubstr(bomb.in_text));
  EXPECT_LT(took, CLOCKS_PER_SEC / 5);
}

INSTANTIATE_TEST_SUITE_P(Files, Bomb,
                         ::testing::Values(BombCase{"dynamic_bomb", 65534, 65533, 60'000, 60, true,
                                                    "65534 program headers"},
                                           BombCase{"two_dynamic", 3, 2, 1, 6, true, "2 dynamic sections"},
                                           BombCase{"no_dynamic", 2, 0, 1, 6, true, "0 dynamic sections"},
                                           BombCase{"strtab_bomb", 2, 1, 300'000, 60, true, "no end within 4096"},
                                           BombCase{"many_names", 2, 1, 4000, 60, true, "more than 256 libraries"},
                                           BombCase{"long_name", 2, 1, 10, 100'000, true, "has no end"},
                                           BombCase{"name_without_end", 2, 1, 1, 20, false, "has no end"},
                                           BombCase{"no_names", 2, 1, 1, 6, true, "no table of their names", false}),
                         [](const auto& info) { return std::string(info.param.name); });

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not support forks of programs with several threads
TEST(Library, IsLoadedByForkedChildrenWhileThreadsOfTheirParentDo) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulator cannot fork a program with several threads";
  const Sandbox sandbox;
  const fs::path library = sandbox.root() / "x.so";
  fs::copy_file(kFake, library);
  File file;
  ASSERT_FALSE(file.open(library));
  const auto load = [&] {
    bp_plugin_query_t query = nullptr;
    return !load_library(library, file, "content", query);
  };
  ASSERT_TRUE(load());
  EXPECT_TRUE(testing::works_in_children(load));
}
#endif

}  // namespace
}  // namespace backplane
