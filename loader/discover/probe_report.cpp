// SPDX-License-Identifier: Apache-2.0
#include "discover/probe_report.h"

#include <sodium.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace backplane {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMac = 32;
constexpr size_t kHead = 2;  // the step and the part
constexpr size_t kMessage = kHead + kMac;
constexpr size_t kReasonHead = 3;  // kNotLoaded is followed by the refusal's code, the text's size (2 bytes) and text

struct Signed {
  char purpose[20] = "backplane probe 4";
  uint32_t index = 0;
  uint32_t step = 0;
  uint32_t part = 0;
};

std::array<unsigned char, kMac> mac_of(const ProbeKey& key, uint32_t index, ProbeStep step, ProcessPart part,
                                       std::string_view reason) {
  Signed content;
  content.index = index;
  content.step = static_cast<uint32_t>(step);
  content.part = part;
  std::array<unsigned char, kMac> mac;
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), mac.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&content), sizeof content);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(reason.data()), reason.size());
  crypto_generichash_final(&state, mac.data(), mac.size());
  return mac;
}

}  // namespace

ProbeKey make_probe_key() {
  ProbeKey key;
  if (sodium_init() < 0) return {};
  randombytes_buf(key.data(), key.size());
  return key;
}

std::string probe_message(const ProbeKey& key, uint32_t index, ProbeStep step, ProcessPart part,
                          const Refusal& reason) {
  std::string why;
  if (step == ProbeStep::kNotLoaded) {
    const std::string text = reason.text.substr(0, kMaxReasonBytes);
    why = {static_cast<char>(reason.code), static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
    why += text;
  }
  const auto mac = mac_of(key, index, step, part, why);
  std::string message{static_cast<char>(step), static_cast<char>(part)};
  return message.append(reinterpret_cast<const char*>(mac.data()), mac.size()).append(why);
}

ProbeProgress read_probe_report(const ProbeKey& key, std::string_view report) {
  ProbeProgress progress;
  for (uint32_t index = 0; !report.empty(); ++index) {
    const auto step = static_cast<ProbeStep>(report[0]);
    const auto part = static_cast<ProcessPart>(report.size() < kMessage ? 0 : report[1]);
    size_t size = kMessage;
    if (step == ProbeStep::kNotLoaded) {
      size += kReasonHead;
      const auto byte = [&](size_t at) { return static_cast<unsigned char>(at < report.size() ? report[at] : 0); };
      size += byte(kMessage + 1) + size_t{256} * byte(kMessage + 2);
    }
    progress.disturbed = report.size() < size || step <= progress.last || step > ProbeStep::kChanged;
    if (progress.disturbed) break;
    const std::string_view why = report.substr(kMessage, size - kMessage);
    progress.disturbed = sodium_memcmp(mac_of(key, index, step, part, why).data(), report.data() + kHead, kMac) != 0;
    if (progress.disturbed) break;
    if (!why.empty()) progress.reason = {static_cast<unsigned char>(why[0]), std::string(why.substr(kReasonHead))};
    progress.before = std::exchange(progress.last, step);
    progress.closed |= step == ProbeStep::kClosed;
    progress.part = part;
    report.remove_prefix(size);
  }
  return progress;
}

ProbeReporter::ProbeReporter(int input, int output)
    : output_(output), page_(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (sodium_init() < 0 || page_ == MAP_FAILED) ::_exit(1);
  auto* key = static_cast<char*>(page_);
  for (size_t at = 0; at < sizeof(ProbeKey);) {
    const ssize_t got = ::read(input, key + at, sizeof(ProbeKey) - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    at += static_cast<size_t>(got);
  }
  ::close(input);
  ::madvise(page_, kPage, MADV_DONTDUMP);
  ::madvise(page_, kPage, MADV_WIPEONFORK);
  ::mprotect(page_, kPage, PROT_NONE);
}

ProbeReporter::~ProbeReporter() {
  ::munmap(page_, kPage);
}

bool ProbeReporter::report(ProbeStep step, ProcessPart part, const Refusal& reason) {
  if (::mprotect(page_, kPage, PROT_READ) != 0) return false;
  const std::string message = probe_message(*static_cast<const ProbeKey*>(page_), index_++, step, part, reason);
  ::mprotect(page_, kPage, PROT_NONE);
  return ::write(output_, message.data(), message.size()) == static_cast<ssize_t>(message.size());
}

}  // namespace backplane
