// SPDX-License-Identifier: Apache-2.0
#include "certify/key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "journal/digest.h"
#include "journal/record.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Bytes = std::vector<unsigned char>;

void start_sodium() {
  if (sodium_init() < 0) throw std::runtime_error("libsodium could not be initialized");
}

std::string hex(const Bytes& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Decodes exactly `size` bytes of lower-case hexadecimal. Throws for anything else.
Bytes unhex(const std::string& text, size_t size, const char* what) {
  Bytes bytes(size);
  size_t count = 0;
  if (text.size() != 2 * size || text.find_first_not_of("0123456789abcdef") != std::string::npos ||
      sodium_hex2bin(bytes.data(), size, text.data(), text.size(), nullptr, &count, nullptr) != 0)
    throw std::runtime_error(fmt::format("its {} is not {} hexadecimal digits in lower case", what, 2 * size));
  return bytes;
}

// The signed content: every field except the signature itself.
Json unsigned_json(const Signature& signature) {
  return {{"role", signature.role},
          {"owner", signature.owner},
          {"public_key", signature.public_hex},
          {"sha256", signature.over}};
}

std::string text_of(const Signature& signature) {
  Json json = unsigned_json(signature);
  json["signature"] = signature.signature_hex;
  return json.dump(2) + '\n';
}

std::string message_of(const Signature& signature) {
  return "backplane-conform bundle 1\n" + unsigned_json(signature).dump();
}

Json parse(const std::string& text) {
  try {
    return parse_record(text);
  } catch (const Json::exception&) {
    throw std::runtime_error("it is not JSON");
  }
}

constexpr uint64_t kMaxKeyFile = 16 << 10;

// Creates a new file that only its owner may read.
void write_secret(const fs::path& file, std::string_view text) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0)
    throw std::runtime_error(fmt::format("'{}' cannot be created: {}", file.string(), std::strerror(errno)));
  const bool is_private = fchmod(descriptor, 0600) == 0;
  while (!text.empty()) {
    const ssize_t size = write(descriptor, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.remove_prefix(static_cast<size_t>(size));
  }
  const bool is_written = fsync(descriptor) == 0 && text.empty() && is_private;
  close(descriptor);
  if (!is_written) throw std::runtime_error(fmt::format("'{}' cannot be written", file.string()));
}

// Throws unless the file is a regular file that belongs to this user and gives other users no permissions.
void check_permissions(const fs::path& file) {
  struct stat info = {};
  if (lstat(file.c_str(), &info) != 0) return;  // reading the file will report the reason
  if (!S_ISREG(info.st_mode)) throw std::runtime_error("it is not a regular file");
  if ((info.st_mode & 077) != 0)
    throw std::runtime_error(
        fmt::format("its mode is {:o}, which gives others permissions: run `chmod 600` on it", info.st_mode & 07777));
  if (info.st_uid != geteuid()) throw std::runtime_error("it belongs to another user: only its owner can use it");
}

}  // namespace

Key make_key(const std::string& owner) {
  start_sodium();
  Bytes open(crypto_sign_PUBLICKEYBYTES), secret(crypto_sign_SECRETKEYBYTES);
  crypto_sign_keypair(open.data(), secret.data());
  return {owner, hex(open), hex(secret)};
}

void write_key(const Key& key, const fs::path& folder, const std::string& name) {
  const fs::path secret = folder / (name + ".key"), open = folder / (name + ".pub");
  for (const fs::path& file : {secret, open}) {
    if (fs::exists(fs::symlink_status(file)))
      throw std::runtime_error(fmt::format("'{}' already exists: move it away or choose another name", file.string()));
  }
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  const Json json = {{"owner", key.owner}, {"public_key", key.public_hex}, {"secret_key", key.secret_hex}};
  write_secret(secret, json.dump(2) + '\n');
  write_file(open, key.public_hex + '\n');
}

Key read_key(const fs::path& file) {
  try {
    check_permissions(file);
    const Json json = parse(read_untrusted_file(file, kMaxKeyFile));
    Key key = {json.value("owner", ""), json.value("public_key", ""), json.value("secret_key", "")};
    unhex(key.public_hex, crypto_sign_PUBLICKEYBYTES, "public_key");
    unhex(key.secret_hex, crypto_sign_SECRETKEYBYTES, "secret_key");
    return key;
  } catch (const Json::exception&) {
    throw std::runtime_error(fmt::format("'{}' is not a key file of `backplane-conform keygen`", file.string()));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("key file '{}' cannot be used: {}", file.string(), error.what()));
  }
}

std::string read_public_key(const fs::path& file) {
  std::string text = read_file(file, kMaxKeyFile);
  text.erase(text.find_last_not_of(" \r\n") + 1);
  try {
    unhex(text, crypto_sign_PUBLICKEYBYTES, "text");
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("public key '{}' cannot be used: {}", file.string(), error.what()));
  }
  return text;
}

std::string sign(const Key& key, const std::string& role, const std::map<std::string, std::string>& over) {
  start_sodium();
  Signature signature = {role, key.owner, key.public_hex, over, ""};
  const Bytes secret = unhex(key.secret_hex, crypto_sign_SECRETKEYBYTES, "secret_key");
  const std::string message = message_of(signature);
  Bytes bytes(crypto_sign_BYTES);
  crypto_sign_detached(bytes.data(), nullptr, reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                       secret.data());
  signature.signature_hex = hex(bytes);
  return text_of(signature);
}

Signature read_signature(const std::string& text) {
  start_sodium();
  Signature signature;
  try {
    const Json json = parse(text);
    signature = {json.at("role"), json.at("owner"), json.at("public_key"), json.at("sha256"), json.at("signature")};
  } catch (const Json::exception&) {
    throw std::runtime_error("it is not a signature");
  }
  if (text_of(signature) != text) throw std::runtime_error("it is not in the form in which signatures are written");
  const Bytes open = unhex(signature.public_hex, crypto_sign_PUBLICKEYBYTES, "public_key");
  const Bytes bytes = unhex(signature.signature_hex, crypto_sign_BYTES, "signature");
  const std::string message = message_of(signature);
  if (crypto_sign_verify_detached(bytes.data(), reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                                  open.data()) != 0)
    throw std::runtime_error("the signature does not match this text and this key");
  return signature;
}

}  // namespace backplane::conform
