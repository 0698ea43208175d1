// SPDX-License-Identifier: Apache-2.0
// Fuzzes blobs. Any bytes are opened as a blob or refused, and opened content must lie within them. The bytes are also
// written as the content of a blob: the blob must open, and be refused after one of its bits is flipped.
#include <cstdlib>

#include "backplane/sdk/blob.hpp"

namespace {

using namespace backplane::sdk;

constexpr uint32_t kVersion = 7;
constexpr std::string_view kKey = "device\ndriver";

bp_status_t opened(std::string_view blob, std::string_view& content) {
  try {
    content = open_blob(blob, kVersion, kKey);
    return BP_OK;
  } catch (const Error& error) {
    if (error.text.empty()) std::abort();
    return error.status;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string_view content;
  const bp_status_t status = opened(bytes, content);
  if (status != BP_OK && status != BP_CORRUPT && status != BP_STALE) std::abort();
  if (status == BP_OK && content.data() + content.size() != bytes.data() + bytes.size()) std::abort();

  BlobWriter writer(kVersion, kKey);
  writer.append(bytes.data(), bytes.size());
  std::string blob = std::move(writer).finish();
  if (opened(blob, content) != BP_OK || content != bytes) std::abort();
  if (size == 0) return 0;
  // Flips one bit, at a position that depends on the input.
  const size_t place = fingerprint(bytes) % blob.size();
  blob[place] = static_cast<char>(blob[place] ^ (1 << (data[0] & 7)));
  if (opened(blob, content) != BP_CORRUPT) std::abort();
  return 0;
}
