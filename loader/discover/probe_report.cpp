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

struct Signed {
  char purpose[20] = "backplane probe 3";
  uint32_t index = 0;
  uint32_t step = 0;
  uint32_t part = 0;
};

std::array<unsigned char, kMac> mac_of(const ProbeKey& key, uint32_t index, ProbeStep step, ProcessPart part) {
  Signed content;
  content.index = index;
  content.step = static_cast<uint32_t>(step);
  content.part = part;
  std::array<unsigned char, kMac> mac;
  crypto_generichash(mac.data(), mac.size(), reinterpret_cast<const unsigned char*>(&content), sizeof content,
                     key.data(), key.size());
  return mac;
}

}  // namespace

ProbeKey make_probe_key() {
  ProbeKey key;
  if (sodium_init() < 0) return {};
  randombytes_buf(key.data(), key.size());
  return key;
}

std::string probe_message(const ProbeKey& key, uint32_t index, ProbeStep step, ProcessPart part) {
  const auto mac = mac_of(key, index, step, part);
  std::string message{static_cast<char>(step), static_cast<char>(part)};
  return message.append(reinterpret_cast<const char*>(mac.data()), mac.size());
}

ProbeProgress read_probe_report(const ProbeKey& key, std::string_view report) {
  ProbeProgress progress;
  for (uint32_t index = 0; !report.empty(); ++index) {
    const auto step = static_cast<ProbeStep>(report[0]);
    const auto part = static_cast<ProcessPart>(report.size() < kMessage ? 0 : report[1]);
    progress.disturbed = report.size() < kMessage || step <= progress.last || step > ProbeStep::kChanged ||
                         sodium_memcmp(mac_of(key, index, step, part).data(), report.data() + kHead, kMac) != 0;
    if (progress.disturbed) break;
    progress.before = std::exchange(progress.last, step);
    progress.closed |= step == ProbeStep::kClosed;
    progress.part = part;
    report.remove_prefix(kMessage);
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

bool ProbeReporter::report(ProbeStep step, ProcessPart part) {
  if (::mprotect(page_, kPage, PROT_READ) != 0) return false;
  const std::string message = probe_message(*static_cast<const ProbeKey*>(page_), index_++, step, part);
  ::mprotect(page_, kPage, PROT_NONE);
  return ::write(output_, message.data(), message.size()) == static_cast<ssize_t>(message.size());
}

}  // namespace backplane
