// SPDX-License-Identifier: Apache-2.0
#include "discover/signature.h"

#include <fmt/format.h>
#include <sodium.h>

#include <system_error>

#include "base/folder.h"
#include "discover/file.h"
#include "discover/writers.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;

// Prefix of the signed text. It makes signatures of other data invalid for manifests.
constexpr std::string_view kPurpose = "backplane manifest 1\n";
constexpr size_t kMaxKeyFile = 1024;

template <size_t kBytes>
bool unhex(const std::string& text, unsigned char (&out)[kBytes]) {
  size_t count = 0;
  return text.size() == 2 * kBytes && text.find_first_not_of("0123456789abcdef") == text.npos &&
         sodium_hex2bin(out, kBytes, text.data(), text.size(), nullptr, &count, nullptr) == 0 && count == kBytes;
}

Result<std::string> read_key(const fs::path& path) {
  auto wrong = [&](std::string_view why) {
    return Status(BP_INVALID_ARGUMENT, fmt::format("trusted key {}: {}", path.string(), why));
  };
  File file;
  if (const Refusal refusal = file.open(path)) return wrong(refusal.text);
  if (const Refusal refusal = check_writers(path, file)) return wrong(refusal.text);
  if (!file.regular() || file.size() > kMaxKeyFile) return wrong("it is not a regular file of at most 1024 bytes");
  std::string text(static_cast<size_t>(file.size()), '\0');
  text.resize(file.read(0, text.data(), text.size()));
  text.erase(text.find_last_not_of(" \r\n") + 1);
  unsigned char key[crypto_sign_PUBLICKEYBYTES];
  if (!unhex(text, key)) return wrong("it is not 64 hexadecimal digits in lower case");
  return text;
}

}  // namespace

Result<std::set<std::string>> read_trusted_keys(const fs::path& folder) {
  std::set<std::string> keys;
  std::error_code error;
  for (const std::string& name : names_in(folder, error)) {
    if (fs::path(name).extension() != ".pub") continue;
    BP_ASSIGN(std::string key, read_key(folder / name));
    keys.insert(std::move(key));
  }
  if (error)
    return Status(BP_INVALID_ARGUMENT,
                  fmt::format("folder {} of trusted keys cannot be read: {}", folder.string(), error.message()));
  return keys;
}

Refusal check_signature(const Manifest& manifest, const std::string& file, const std::set<std::string>& keys) {
  auto untrusted = [&](std::string_view why) {
    return Refusal{BP_REFUSED_UNTRUSTED, fmt::format("manifest {}: {}, and BACKPLANE_REQUIRE_SIGNED or option "
                                                     "loader.require_signed requires a trusted signature",
                                                     file, why)};
  };
  if (manifest.signature.empty()) return untrusted("it is not signed");
  if (manifest.sha256.empty()) return untrusted("it does not state the sha256 of its library");
  if (!keys.contains(manifest.key)) return untrusted(fmt::format("its key {} is not trusted", manifest.key));
  unsigned char key[crypto_sign_PUBLICKEYBYTES], signature[crypto_sign_BYTES];
  const std::string message = std::string(kPurpose) + manifest.signed_text;
  if (sodium_init() < 0 || !unhex(manifest.key, key) || !unhex(manifest.signature, signature) ||
      crypto_sign_verify_detached(signature, reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                                  key) != 0)
    return untrusted("its signature is wrong");
  return {};
}

}  // namespace backplane
