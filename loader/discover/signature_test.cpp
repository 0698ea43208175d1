// SPDX-License-Identifier: Apache-2.0
// Hashes and signatures in manifests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sodium.h>

#include <csignal>
#include <functional>

#include "discover/digest.h"
#include "discover/environment.h"
#include "discover/manifest.h"
#include "discover/testing.h"
#include "discover/writers.h"
#include "testing/manifest_writer.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kFake;
using testing::manifest;
using testing::refusals;
using testing::Request;
using testing::Sandbox;

std::string hex(const unsigned char* bytes, size_t count) {
  std::string text(2 * count + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes, count);
  text.pop_back();
  return text;
}

class Signed : public ::testing::Test {
 protected:
  Signed() {
    EXPECT_GE(sodium_init(), 0);
    crypto_sign_keypair(open_, secret_);
    sandbox.write("keys/acme.pub", hex(open_, sizeof open_) + "\n");
    sandbox.write("keys/README", "no key");
    File file;
    EXPECT_FALSE(file.open(kFake));
    sha256 = sha256_of(file).value_or("");
  }
  // Writes a manifest with the additional members `more` and signs its text or, with `change`, a changed text.
  fs::path signed_manifest(const std::string& more, const std::function<std::string(std::string)>& change = {}) {
    const Log log(BP_LOG_ERROR, nullptr, nullptr);
    Manifest read;
    const std::string place = R"(, "signature": {"key": ")" + hex(open_, sizeof open_) + R"(", "value": ")";
    EXPECT_FALSE(parse_manifest(manifest("fake", kFake.string(), more + place + std::string(128, '0') + "\"}"),
                                "/x.json", log, read));
    std::string message = "backplane manifest 1\n" + read.signed_text;
    if (change) message = change(message);
    unsigned char signature[crypto_sign_BYTES];
    crypto_sign_detached(signature, nullptr, reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                         secret_);
    return sandbox.write("fake.json",
                         manifest("fake", kFake.string(), more + place + hex(signature, sizeof signature) + "\"}"));
  }
  std::string text_of(const fs::path& file) const {
    auto env =
        Request().only_given().file(file).option("loader.require_signed", (sandbox.root() / "keys").string()).create();
    if (!env.ok()) return std::string(env.status().text());
    const Candidate& candidate = (*env)->candidates()[0];
    EXPECT_TRUE(candidate.refusal == BP_REFUSED_NONE || candidate.refusal == BP_REFUSED_UNTRUSTED) << candidate.text;
    return candidate.refusal == BP_REFUSED_NONE ? "taken" : candidate.text;
  }

  Sandbox sandbox;
  std::string sha256;

 private:
  unsigned char open_[crypto_sign_PUBLICKEYBYTES], secret_[crypto_sign_SECRETKEYBYTES];
};

TEST_F(Signed, AManifestByATrustedKeyIsTaken) {
  EXPECT_EQ(text_of(signed_manifest(R"(, "sha256": ")" + sha256 + "\"")), "taken");
  sandbox.set("BACKPLANE_REQUIRE_SIGNED", (sandbox.root() / "keys").string());
  EXPECT_THAT(refusals(Request().only_given().file(sandbox.root() / "fake.json")), ElementsAre(BP_REFUSED_NONE));
}

TEST_F(Signed, AnythingElseIsRefused) {
  EXPECT_THAT(text_of(kFake), HasSubstr("no manifest that signs it"));
  EXPECT_THAT(text_of(sandbox.write("plain.json", manifest("fake", kFake.string()))), HasSubstr("is not signed"));
  EXPECT_THAT(text_of(signed_manifest(", \"vendor\": \"x\"")), HasSubstr("does not state the sha256"));
  const std::string hash = R"(, "sha256": ")" + sha256 + "\"";
  EXPECT_THAT(text_of(signed_manifest(hash, [](std::string text) { return text + " "; })),
              HasSubstr("signature is wrong"));
  const std::string good = bytes_of(signed_manifest(hash));
  std::string changed = good;
  changed.replace(changed.find("test.fake"), 9, "text.fake");
  EXPECT_THAT(text_of(sandbox.write("changed.json", changed)), HasSubstr("signature is wrong"));
  fs::remove(sandbox.root() / "keys/acme.pub");
  EXPECT_THAT(text_of(sandbox.write("good.json", good)), HasSubstr("is not trusted"));
  sandbox.write("keys/bad.pub", "x");
  EXPECT_THAT(text_of(sandbox.write("good.json", good)), HasSubstr("64 hexadecimal digits"));
}

TEST_F(Signed, ALibraryWithAnotherHashIsRefused) {
  const auto with_hash = [&](const std::string& hash) {
    return sandbox.write("fake.json", manifest("fake", kFake.string(), R"(, "sha256": ")" + hash + "\""));
  };
  auto env = Request().only_given().file(with_hash(std::string(64, '0'))).create();
  EXPECT_EQ((*env)->candidates()[0].refusal, BP_REFUSED_UNTRUSTED);
  EXPECT_THAT((*env)->candidates()[0].text, HasSubstr("its SHA-256 is " + sha256));
  EXPECT_THAT(refusals(Request().only_given().file(with_hash(sha256))), ElementsAre(BP_REFUSED_NONE));
}

}  // namespace
}  // namespace backplane
