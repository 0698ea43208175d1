// SPDX-License-Identifier: Apache-2.0
// Each mistake in a manifest causes an error that names the file and the mistake.
#include "discover/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "discover/environment.h"
#include "discover/testing.h"
#include "testing/manifest_writer.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::expect_refused;
using testing::kFake;
using testing::manifest;
using testing::Request;
using testing::Sandbox;

struct ManifestCase {
  const char* name;
  std::string text;
  const char* in_text;
  uint32_t code = BP_REFUSED_MANIFEST;
};

std::string deep(size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

class BadManifest : public ::testing::TestWithParam<ManifestCase> {};

TEST_P(BadManifest, IsRefusedWithFileAndKey) {
  const Sandbox sandbox;
  expect_refused(sandbox.write("broken.json", GetParam().text), GetParam().code, GetParam().in_text);
}

// A manifest that begins with a valid version and id, followed by `rest`.
std::string begun(const std::string& rest) {
  return R"({"format_version": "1.0", "id": "com.acme.fake")" + rest;
}
std::string with_library(const std::string& rest) {
  return begun(R"(, "library": "x.so")" + rest);
}
// A valid manifest with additional keys.
std::string with(const std::string& more) {
  return manifest("fake", "x.so", ", " + more);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, BadManifest,
    ::testing::Values(
        ManifestCase{"blank", " ", "JSON"}, ManifestCase{"cut", R"({"format_version": "1.0", "id": )", "JSON"},
        ManifestCase{"null_and_more", manifest("fake", kFake.string()) + std::string(1, '\0') + "x",
                     "a null character"},
        ManifestCase{"trailing", manifest("fake", kFake.string()) + "}", "JSON"},
        ManifestCase{"bad_utf8", "{\"id\": \"\xff\"}", "UTF-8"}, ManifestCase{"no_object", "[1, 2]", "object"},
        ManifestCase{"too_deep", deep(100), "deeper"}, ManifestCase{"very_deep", deep(20'000), "deeper"},
        ManifestCase{"too_large", "{\"x\": \"" + std::string(64 << 10, 'x') + "\"}", "larger than 65536"},
        ManifestCase{"key_twice", with(R"("vendor": "a", "vendor": "b")"), "\"vendor\" appears twice"},
        ManifestCase{"inner_key_twice", with(R"("more": [{"a": 1, "b": {"c": 1}, "a": 2}])"), "\"a\" appears twice"},
        ManifestCase{"no_format", R"({"id": "com.acme.fake"})", "\"format_version\" is missing"},
        ManifestCase{"newer_format", R"({"format_version": "2.0"})", "\"format_version\" is \"2.0\""},
        ManifestCase{"format_number", R"({"format_version": 1})", "\"format_version\" is 1"},
        ManifestCase{"format_words", R"({"format_version": "1"})", "\"format_version\" is \"1\""},
        ManifestCase{"no_id", R"({"format_version": "1.0", "library": "x.so"})", "\"id\" is missing"},
        ManifestCase{"short_id", R"({"format_version": "1.0", "id": "fake"})",
                     "\"fake\": expected a domain in reverse"},
        ManifestCase{"illegal_id", manifest("Fake One", "x.so"), "Fake One"},
        ManifestCase{"empty_label", manifest(".fake", "x.so"), "test..fake"},
        ManifestCase{"long_id", manifest(std::string(200, 'x'), "x.so"), "expected a domain"},
        ManifestCase{"no_library", begun("}"), "\"library\" is missing"},
        ManifestCase{"empty_library", manifest("fake", ""), "\"library\" is \"\""},
        ManifestCase{"nul_in_library", manifest("fake", "x\\u0000.so"), "\"library\""},
        ManifestCase{"library_list", begun(R"(, "library": ["x.so"]})"), "[\"x.so\"]"},
        ManifestCase{"no_interface", with_library("}"), "\"interface\" is missing"},
        ManifestCase{"interface_number", with_library(R"(, "interface": {"min": 1.0, "max": "1.0"}})"),
                     "interface.min"},
        ManifestCase{"interface_words", with_library(R"(, "interface": {"min": "1.0", "max": "1.0beta"}})"),
                     "\"1.0beta\""},
        ManifestCase{"interface_huge", with_library(R"(, "interface": {"min": "1.0", "max": "1.70000"}})"),
                     "interface.max"},
        ManifestCase{"interface_reversed", with_library(R"(, "interface": {"min": "1.1", "max": "1.0"}})"),
                     "min not above max"},
        ManifestCase{"isolation", with(R"("isolation": "maybe")"), "\"maybe\""},
        ManifestCase{"vendor", with(R"("vendor": 7)"), "\"vendor\" is 7"},
        ManifestCase{"arch", with(R"("arch": [1])"), "\"arch\" is 1"},
        ManifestCase{"other_arch", with(R"("arch": ["riscv32", "z80"])"), "for riscv32, z80", BP_REFUSED_ARCHITECTURE},
        ManifestCase{"opsets", with(R"("opsets": {"min": 9})"), "\"opsets\""},
        ManifestCase{"opsets_reversed", with(R"("opsets": {"min": 9, "max": 8})"), "min not above max"},
        ManifestCase{"opsets_negative", with(R"("opsets": {"min": -1, "max": 8})"), "opsets.min"},
        ManifestCase{"opsets_huge", with(R"("opsets": {"min": 1, "max": 18446744073709551615})"), "opsets.max"},
        ManifestCase{"device_kinds", with(R"("device_kinds": ["tpu"])"), "[\"tpu\"]"},
        ManifestCase{"priority", with(R"("priority": 1e3)"), "whole number"},
        ManifestCase{"priority_huge", with(R"("priority": 5000)"), "-1000 to 1000"},
        ManifestCase{"sha256", with(R"("sha256": "ABC")"), "64 hexadecimal"},
        ManifestCase{"signature", with(R"("signature": {"key": "x"})"), "\"signature\""},
        ManifestCase{"signature_value", with(R"("signature": {"key": "x", "value": "y"})"), "signature.key"},
        ManifestCase{"conformance", with(R"("conformance": "L3")"), "\"conformance\""},
        ManifestCase{"newer_abi", with_library(R"(, "interface": {"min": "7.0", "max": "7.1"}})"), "7.0 to 7.1",
                     BP_REFUSED_VERSION}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Manifest, HasEveryKeyOfTheReferenceAndIgnoresOthers) {
  const Log log(BP_LOG_ERROR, nullptr, nullptr);
  Manifest read;
  const std::string text = R"({"format_version": "1.7", "id": "com.acme-chips.x", "library": "../lib/x.so",
      "interface": {"min": "1.0", "max": "1.12"}, "name": "für Leute", "vendor": "Acme", "version": "2.1",
      "arch": "x86_64", "opsets": {"min": 7, "max": 24}, "device_kinds": ["npu", "cpu"], "priority": -3,
      "isolation": "process", "sha256": ")" +
                           std::string(64, 'a') + R"(",
      "conformance": {"level": "L2", "bundle": "acme.bundle"}, "color": {"of": ["the", "sea"]},
      "signature": {"key": ")" +
                           std::string(64, 'b') + R"(", "value": ")" + std::string(128, 'c') + R"("}})";
  const Refusal refusal = parse_manifest(text, "/opt/share/x.json", log, read);
  ASSERT_FALSE(refusal) << refusal.text;
  EXPECT_EQ(read.full_id, "com.acme-chips.x");
  EXPECT_EQ(read.backend_id, "x");
  EXPECT_EQ(read.library, "/opt/lib/x.so");
  EXPECT_EQ(read.version_max, BP_MAKE_VERSION(1, 12));
  EXPECT_EQ(read.name, "für Leute");
  EXPECT_EQ(read.vendor, "Acme");
  EXPECT_EQ(read.version, "2.1");
  EXPECT_THAT(read.arch, ElementsAre("x86_64"));
  EXPECT_EQ(read.opset_max, 24u);
  EXPECT_THAT(read.device_kinds, ElementsAre("npu", "cpu"));
  EXPECT_EQ(read.priority, -3);
  EXPECT_TRUE(read.isolated);
  EXPECT_EQ(read.conformance_level, "L2");
  EXPECT_EQ(read.signed_text.find("signature"), std::string::npos);
  EXPECT_TRUE(read.signed_text.starts_with(R"({"arch":"x86_64","color":{"of":["the","sea"]},"conformance":)"));
}

// A manifest that looks empty would disable others.
TEST(Manifest, ThatCannotBeReadCompletelyIsNotEmpty) {
  const fs::path shorter = "/sys/devices/system/cpu/online";  // the file's size is a page, but its text is shorter
  std::error_code error;
  if (fs::file_size(shorter, error) < 1000 || error) GTEST_SKIP() << "the system has no such file";
  const Sandbox sandbox;
  fs::create_symlink(shorter, sandbox.root() / "x.json");
  expect_refused(sandbox.root() / "x.json", BP_REFUSED_MISSING, "cannot be read completely");
}

// Files in /proc have the size 0.
TEST(Manifest, FilesOfTheKernelAreNotEmpty) {
  const Sandbox sandbox;
  fs::create_symlink("/proc/self/status", sandbox.root() / "x.json");
  expect_refused(sandbox.root() / "x.json", BP_REFUSED_MISSING, "cannot be read completely");
}

TEST(Manifest, MissingLibraryIsTheRefusalOfTheCandidate) {
  const Sandbox sandbox;
  const fs::path file = sandbox.write("a/gone.json", manifest("gone", "gone.so"));
  auto env = Request().only_given().file(file).create();
  ASSERT_TRUE(env.ok());
  const Candidate& candidate = (*env)->candidates()[0];
  EXPECT_EQ(candidate.refusal, BP_REFUSED_MISSING);
  EXPECT_EQ(candidate.id, "gone");
  EXPECT_EQ(candidate.manifest, file);
  EXPECT_EQ(candidate.library, sandbox.root() / "a/gone.so");
}

}  // namespace
}  // namespace backplane
