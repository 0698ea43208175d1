// SPDX-License-Identifier: Apache-2.0
#include "sandbox/channel.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace backplane::conform {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMacBytes = 32;
constexpr int kFirstFree = 10;  // leaves lower numbers free, because a plugin may use fixed ones

struct Label {
  char purpose[32] = "backplane-conform record 1";
  uint64_t number = 0;
  uint64_t of_case = 0;
};

void write_mac(const ChannelKey& key, uint64_t number, uint32_t of_case, std::string_view content, char* out) {
  Label label;
  label.number = number;
  label.of_case = of_case;
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), kMacBytes);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&label), sizeof label);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(content.data()), content.size());
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(out), kMacBytes);
  sodium_memzero(&state, sizeof state);
}

// Ends the process if the stream ends or fails.
void read_all(int from, char* to, size_t size) {
  while (size != 0) {
    const ssize_t got = read(from, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(1);
    to += got;
    size -= static_cast<size_t>(got);
  }
}

void write_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(to, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) _exit(1);
    bytes.remove_prefix(static_cast<size_t>(size));
  }
}

}  // namespace

ChannelKey make_channel_key() {
  if (sodium_init() < 0) abort();
  ChannelKey key;
  randombytes_buf(key.data(), key.size());
  return key;
}

std::string sealed(const ChannelKey& key, uint64_t number, uint32_t of_case, std::string_view content) {
  std::string record(kSealBytes, '\0');
  const uint64_t size = content.size();
  std::memcpy(record.data(), &size, sizeof size);
  write_mac(key, number, of_case, content, record.data() + sizeof size);
  return record += content;
}

Unsealer::State Unsealer::next(uint32_t of_case, uint64_t most, std::string& out_content) {
  if (is_forged_) return State::kForged;
  if (buffer_.size() < kSealBytes) return State::kIncomplete;
  uint64_t size = 0;
  std::memcpy(&size, buffer_.data(), sizeof size);
  if (size > most) {
    is_forged_ = true;
    return State::kForged;
  }
  if (buffer_.size() - kSealBytes < size) return State::kIncomplete;
  const std::string_view content = std::string_view(buffer_).substr(kSealBytes, size);
  char mac[kMacBytes];
  write_mac(key_, number_, of_case, content, mac);
  if (sodium_memcmp(mac, buffer_.data() + sizeof size, kMacBytes) != 0) {
    is_forged_ = true;
    return State::kForged;
  }
  ++number_;
  out_content = content;
  buffer_.erase(0, kSealBytes + size);
  return State::kRecord;
}

Channel::Channel(int requests, int records)
    : requests_(fcntl(requests, F_DUPFD_CLOEXEC, kFirstFree)),
      records_(fcntl(records, F_DUPFD_CLOEXEC, kFirstFree)),
      page_(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (sodium_init() < 0 || requests_ < 0 || records_ < 0 || page_ == MAP_FAILED) _exit(1);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, requests);
  close(nothing);
  close(records);
  read_all(requests_, static_cast<char*>(page_), sizeof(ChannelKey));
  madvise(page_, kPage, MADV_DONTDUMP);
  madvise(page_, kPage, MADV_WIPEONFORK);
  mprotect(page_, kPage, PROT_NONE);
}

Channel::~Channel() {
  munmap(page_, kPage);
  close(requests_);
  close(records_);
}

void Channel::send(uint32_t of_case, std::string_view content) {
  if (mprotect(page_, kPage, PROT_READ) != 0) _exit(1);
  const std::string record = sealed(*static_cast<const ChannelKey*>(page_), number_++, of_case, content);
  mprotect(page_, kPage, PROT_NONE);
  write_all(records_, record);
}

std::optional<std::string> Channel::receive() {
  uint64_t size = 0;
  read_all(requests_, reinterpret_cast<char*>(&size), sizeof size);
  if (size == 0) return {};
  std::string request(size, '\0');
  read_all(requests_, request.data(), size);
  return request;
}

std::string framed(std::string_view request) {
  const uint64_t size = request.size();
  std::string frame(sizeof size, '\0');
  std::memcpy(frame.data(), &size, sizeof size);
  return frame += request;
}

}  // namespace backplane::conform
