// SPDX-License-Identifier: Apache-2.0
#include "backend_info.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "status.h"

namespace onnxifi_backend {
namespace {

constexpr size_t kMaxText = 4096;  // in bytes; longer texts are cut
constexpr uint32_t kDefaultIrVersion = 3, kDefaultOpset = 8;
constexpr uint32_t kMaxVersion = 10'000;
constexpr size_t kMaxDomains = 100;

// Returns the size in bytes of the character at the beginning of a text, or 0 if it is a control character or not valid
// UTF-8.
size_t size_of_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead >= ' ' && lead != 0x7F ? 1 : 0;
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool is_control = lead == 0xC2 && second < 0xA0;
  const bool is_overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool is_surrogate = lead == 0xED && second >= 0xA0, is_beyond = lead == 0xF4 && second >= 0x90;
  return is_control || is_overlong || is_surrogate || is_beyond ? 0 : size;
}

class Asker {
 public:
  Asker(const Library& library, onnxBackendID id) : library_(library), id_(id), buffer_(kRoom) {}

  // Returns a text property up to its first NUL, made `printable`, without leading and trailing spaces. Empty if the
  // library does not report it.
  std::string text(onnxBackendInfo type) {
    const size_t size = query(type, kStated);
    const std::string text = printable({buffer_.data(), strnlen(buffer_.data(), std::min(size, kMaxText))});
    const size_t first = text.find_first_not_of(' ');
    return first == std::string::npos ? std::string() : text.substr(first, text.find_last_not_of(' ') + 1 - first);
  }
  // Returns a number of 64 or 32 bits; nullopt if the library reports neither.
  std::optional<uint64_t> number(onnxBackendInfo type) {
    uint64_t value = 0;
    const size_t size = query(type, sizeof value);
    if (size != sizeof value && size != sizeof(uint32_t)) return std::nullopt;
    std::memcpy(&value, buffer_.data(), size);
    return value;
  }

 private:
  // The library is passed a size of at most kStated bytes, but the buffer has kRoom bytes, as some libraries write past
  // the end.
  static constexpr size_t kRoom = size_t{1} << 20, kStated = size_t{1} << 16;

  // Returns the number of bytes that the library wrote; 0 if its call failed or reports more than `stated`.
  size_t query(onnxBackendInfo type, size_t stated) {
    std::fill_n(buffer_.begin(), kStated, 0);
    size_t size = stated;
    const std::unique_lock<std::mutex> lock = library_.guard();
    const onnxStatus status = library_.functions().get_backend_info(id_, type, buffer_.data(), &size);
    return status == ONNXIFI_STATUS_SUCCESS && size <= stated ? size : 0;
  }

  const Library& library_;
  const onnxBackendID id_;
  std::vector<char> buffer_;
};

// Splits a text at white space, commas and semicolons.
std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  constexpr std::string_view kBetween = " ,;\t\n";
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) return result;
    const size_t end = std::min(text.find_first_of(kBetween), text.size());
    result.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

// Returns 0 if the text is not a version.
uint32_t version_of(std::string_view text) {
  uint32_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  return error == std::errc() && end == text.data() + text.size() && version <= kMaxVersion ? version : 0;
}

std::string pci_of(Asker& asker) {
  const std::optional<uint64_t> bus = asker.number(ONNXIFI_BACKEND_PCI_BUS_ID),
                                device = asker.number(ONNXIFI_BACKEND_PCI_DEVICE_ID);
  const uint64_t domain = asker.number(ONNXIFI_BACKEND_PCI_DOMAIN_ID).value_or(0);
  if (!bus || !device || *bus > 0xff || *device > 0x1f || domain > 0xffff) return {};
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", static_cast<unsigned>(domain), static_cast<unsigned>(*bus),
                static_cast<unsigned>(*device));
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t size = size_of_character(text);
    result += size == 0 ? std::string_view("?") : text.substr(0, size);
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return result;
}

uint32_t newest_ir_version(const std::string& text) {
  uint32_t newest = 0;
  for (const std::string_view word : words(text)) newest = std::max(newest, version_of(word));
  return newest;
}

std::map<std::string, uint32_t, std::less<>> newest_opsets(const std::string& text) {
  std::map<std::string, uint32_t, std::less<>> newest;
  for (const std::string_view word : words(text)) {
    const size_t colon = word.rfind(':');
    const uint32_t version = version_of(colon == std::string_view::npos ? word : word.substr(colon + 1));
    if (version == 0 || newest.size() == kMaxDomains) continue;
    std::string domain(colon == std::string_view::npos ? std::string_view() : word.substr(0, colon));
    if (domain == "ai.onnx") domain.clear();
    uint32_t& known = newest[domain];
    known = std::max(known, version);
  }
  return newest;
}

BackendInfo info_of(const Library& library, onnxBackendID id) {
  Asker asker(library, id);
  const auto number = [&](onnxBackendInfo type) { return asker.number(type).value_or(0); };
  BackendInfo reported;
  reported.name = asker.text(ONNXIFI_BACKEND_NAME);
  reported.vendor = asker.text(ONNXIFI_BACKEND_VENDOR);
  reported.version = asker.text(ONNXIFI_BACKEND_VERSION);
  reported.device = asker.text(ONNXIFI_BACKEND_DEVICE);
  reported.extensions = asker.text(ONNXIFI_BACKEND_EXTENSIONS);
  reported.ir_versions = asker.text(ONNXIFI_BACKEND_ONNX_IR_VERSION);
  reported.opset_versions = asker.text(ONNXIFI_BACKEND_OPSET_VERSION);
  reported.device_type = number(ONNXIFI_BACKEND_DEVICE_TYPE);
  reported.capabilities = number(ONNXIFI_BACKEND_CAPABILITIES);
  reported.memory_bytes = number(ONNXIFI_BACKEND_MEMORY_SIZE);
  reported.macs_fp32 = number(ONNXIFI_BACKEND_MACS_FP32);
  reported.macs_fp16 = number(ONNXIFI_BACKEND_MACS_FP16);
  reported.memory_bandwidth = number(ONNXIFI_BACKEND_MEMORY_BANDWIDTH);
  reported.read_bandwidth = number(ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH);
  reported.write_bandwidth = number(ONNXIFI_BACKEND_CPU_MEMORY_WRITE_BANDWIDTH);
  reported.pci = pci_of(asker);
  reported.ir_version = newest_ir_version(reported.ir_versions);
  if (reported.ir_version == 0) reported.ir_version = kDefaultIrVersion;
  reported.opsets = newest_opsets(reported.opset_versions);
  reported.opsets.emplace("", kDefaultOpset);
  return reported;
}

}  // namespace onnxifi_backend
