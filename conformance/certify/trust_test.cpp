// SPDX-License-Identifier: Apache-2.0
#include "certify/trust.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

const std::string kKey(64, 'a');

TrustedKey key() {
  return {kKey, "Acme", {"vendor"}, "2026-01-01", "2026-12-31", ""};
}

TEST(Trust, AKeyCountsForItsRoleInItsTime) {
  Trust trust;
  EXPECT_EQ(trust.of(kKey, "vendor", "2026-06-01").fault, "the key is unknown");
  trust.add(key());
  EXPECT_TRUE(trust.of(kKey, "vendor", "2026-01-01").counts());
  EXPECT_TRUE(trust.of(kKey, "vendor", "2026-12-31").counts());
  EXPECT_EQ(trust.of(kKey, "vendor", "2026-06-01").owner, "Acme");
  EXPECT_EQ(trust.of(kKey, "vendor", "2025-12-31").fault, "the key is valid from 2026-01-01 on");
  EXPECT_EQ(trust.of(kKey, "vendor", "2027-01-01").fault, "the key expired on 2026-12-31");
  EXPECT_EQ(trust.of(kKey, "lab", "2026-06-01").fault, "the key may not sign as 'lab'");
  EXPECT_FALSE(trust.of(std::string(64, 'b'), "vendor", "2026-06-01").counts());
}

TEST(Trust, ARevokedKeyNeverCounts) {
  Trust trust;
  TrustedKey revoked = key();
  revoked.revoked = "2026-11-01";
  trust.add(key());
  trust.add(revoked);
  EXPECT_EQ(trust.of(kKey, "vendor", "2026-06-01").fault, "the key was revoked on 2026-11-01");
}

TEST(Trust, FilesAreReadOrNamed) {
  const fs::path folder = fs::path(testing::TempDir()) / ("backplane_trust_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto write = [&](const std::string& text) { std::ofstream(folder / "a.json") << text; };
  const std::string entry = "{\"public_key\": \"" + kKey +
                            R"(", "owner": "Acme", "roles": ["lab"], "from": "2026-01-01", "to": "2026-12-31"})";
  write(R"({"trust": 1, "keys": [)" + entry + "]}");
  EXPECT_TRUE(Trust::read(folder).of(kKey, "lab", "2026-06-01").counts());
  EXPECT_TRUE(Trust::read(folder / "a.json").of(kKey, "lab", "2026-06-01").counts());
  for (const fs::path& open : {folder, folder / "a.json"}) {
    const fs::perms before = fs::status(open).permissions();
    fs::permissions(open, fs::perms::others_write, fs::perm_options::add);
    EXPECT_THAT([&] { Trust::read(folder); },
                testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("is world-writable")));
    fs::permissions(open, before);
  }
  fs::create_symlink("nowhere", folder / "b.json");
  for (const fs::path& read : {folder / "c.json", folder}) {
    const std::string missing = (folder / (read == folder ? "b.json" : "c.json")).string();
    EXPECT_THAT([&] { Trust::read(read); },
                testing::ThrowsMessage<std::runtime_error>("'" + missing + "' does not exist"));
  }
  fs::remove(folder / "b.json");
  for (const char* bad : {"", "[]", "{}", R"({"trust": 2, "keys": []})", R"({"trust": 1, "keys": [{}]})",
                          R"({"trust": 1, "keys": 5})", R"({"trust": 1, "keys": [{"public_key": "aa", "owner": "x",
                          "roles": [], "from": "2026-01-01", "to": "2026-01-01"}]})"}) {
    write(bad);
    EXPECT_THAT([&] { Trust::read(folder); }, testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("a.json")))
        << bad;
  }
  std::string never = entry;
  write(R"({"trust": 1, "keys": [)" + never.replace(never.find("2026-12-31"), 10, "9999-99-99") + "]}");
  EXPECT_THAT([&] { Trust::read(folder); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("'to' is '9999-99-99'")));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace backplane::conform
