// SPDX-License-Identifier: Apache-2.0
#include "isolate/channel.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "base/file_limit.h"

namespace backplane::isolate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kPageBytes = 4096;
constexpr uint32_t kLongestSpinUs = 30;
constexpr uint32_t kShortestSpinUs = 1;
constexpr uint32_t kTryAgain = 64;  // after this many waits, tries the longest spin again

struct Header {
  uint32_t magic;
  Operation operation;
  uint64_t bytes;
  uint32_t files;
  uint32_t reserved;
};
constexpr uint32_t kMagic = 0x42504d31;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t value, uint32_t us) {
  const timespec time{static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000) * 1000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

Status ended() {
  return {BP_DEVICE_LOST, "the other process has ended"};
}

// Calls the check once in each slice of a transfer, even if the other side sends or takes one byte at a time and so
// never lets this side wait for a whole slice.
class Pace {
 public:
  explicit Pace(Check& inner) : check_(inner) {}
  Status check() {
    const auto now = Clock::now();
    if (now - checked_ < std::chrono::microseconds(kSliceUs)) return {};
    checked_ = now;
    return check_.check();
  }

 private:
  Check& check_;
  Clock::time_point checked_ = Clock::now();
};

}  // namespace

Result<std::unique_ptr<Channel>> Channel::make(Descriptor& out_socket, Descriptor& out_page) {
  const auto cannot = [](const char* what) {
    return Status(BP_RESOURCE_EXHAUSTED, std::string(what) + ": " + std::strerror(errno));
  };
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return cannot("cannot create a socket for a backend");
  Descriptor own(ends[0]);
  out_socket = Descriptor(ends[1]);
  const FileLimitFails limit;
  out_page = Descriptor(::memfd_create("backplane-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!out_page || ::ftruncate(out_page.get(), kPageBytes) != 0 ||
      ::fcntl(out_page.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return cannot("cannot allocate shared memory for a backend");
  Mapping mapping = Mapping::of(out_page.get(), 0, kPageBytes, PROT_READ | PROT_WRITE);
  if (!mapping) return cannot("cannot map shared memory for a backend");
  return std::unique_ptr<Channel>(new Channel(Side::kLoader, std::move(own), std::move(mapping)));
}

std::unique_ptr<Channel> Channel::take(Descriptor socket, const Descriptor& page) {
  struct stat state {};
  if (::fstat(page.get(), &state) != 0 || static_cast<uint64_t>(state.st_size) < kPageBytes) return nullptr;
  Mapping mapping = Mapping::of(page.get(), 0, kPageBytes, PROT_READ | PROT_WRITE);
  if (!mapping) return nullptr;
  return std::unique_ptr<Channel>(new Channel(Side::kBackend, std::move(socket), std::move(mapping)));
}

void Channel::pass(Turn turn) const {
  Page& page = this->page();
  const uint32_t other = 1 - static_cast<uint32_t>(side_);
  page.turn.store(static_cast<uint32_t>(turn), std::memory_order_relaxed);
  page.side.store(other, std::memory_order_seq_cst);
  if (page.sleeping[other].load(std::memory_order_seq_cst)) futex_wake(page.side);
}

void Channel::wake() const {
  futex_wake(page().side);
}

Channel::Channel(Side side, Descriptor socket, Mapping mapping)
    : side_(side), spin_us_(kLongestSpinUs), socket_(std::move(socket)), mapping_(std::move(mapping)) {}

// Spins while waiting for the other side. If the reply comes within microseconds, from another core, this avoids two
// system calls, one to sleep and one to wake. Otherwise the time is wasted, so the next spin is shorter. Returns
// whether the other side has replied.
bool Channel::spin() {
  const std::atomic<uint32_t>& side = page().side;
  if (++awaited_ % kTryAgain == 0) spin_us_ = kLongestSpinUs;
  for (const auto end = Clock::now() + std::chrono::microseconds(spin_us_); Clock::now() < end;)
    for (int i = 0; i < 16; ++i) {
      if (side.load(std::memory_order_acquire) == static_cast<uint32_t>(side_)) {
        spin_us_ = std::min(kLongestSpinUs, spin_us_ * 2);
        return true;
      }
      relax();
    }
  spin_us_ = std::max(kShortestSpinUs, spin_us_ / 4);
  return false;
}

Status Channel::await(Check& check, uint32_t slice_us) {
  if (spin()) return {};
  Page& page = this->page();
  const auto own = static_cast<uint32_t>(side_);
  const auto mine = [&] { return page.side.load(std::memory_order_acquire) == own; };
  std::atomic<uint32_t>& sleeping = page.sleeping[own];
  for (;;) {
    sleeping.store(1, std::memory_order_seq_cst);
    const uint32_t seen = page.side.load(std::memory_order_seq_cst);
    if (seen != own) futex_wait(page.side, seen, slice_us);
    sleeping.store(0, std::memory_order_relaxed);
    if (mine()) return {};
    if (Status status = check.check(); !status.ok()) return status;
  }
}

Status Channel::wait_for(short events) const {
  pollfd watched{socket_.get(), events, 0};
  const int ready = ::poll(&watched, 1, static_cast<int>(kSliceUs / 1000));
  if (ready < 0 && errno != EINTR) return {BP_INTERNAL, std::string("poll: ") + std::strerror(errno)};
  return {};
}

Status Channel::send(Operation operation, const std::string& bytes, const std::vector<int>& files, Check& check) const {
  if (files.size() > kMostFiles)
    return {BP_INTERNAL, std::to_string(files.size()) + " descriptors are too many for one message"};
  const Header header{kMagic, operation, bytes.size(), static_cast<uint32_t>(files.size()), 0};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> control{};
  Pace pace(check);
  for (uint64_t sent = 0; sent < sizeof header + bytes.size();) {
    BP_TRY(pace.check());
    iovec parts[2];
    int count = 0;
    if (sent < sizeof header) {
      parts[count++] = {const_cast<char*>(reinterpret_cast<const char*>(&header)) + sent, sizeof header - sent};
      parts[count++] = {const_cast<char*>(bytes.data()), bytes.size()};
    } else {
      parts[count++] = {const_cast<char*>(bytes.data()) + (sent - sizeof header),
                        bytes.size() - (sent - sizeof header)};
    }
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = static_cast<size_t>(count);
    if (sent == 0 && !files.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
      cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), files.data(), files.size() * sizeof(int));
    }
    const ssize_t done = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done > 0) {
      sent += static_cast<uint64_t>(done);
    } else if (errno == EAGAIN) {
      BP_TRY(wait_for(POLLOUT));
    } else if (errno != EINTR) {
      return ended();
    }
  }
  return {};
}

Status Channel::read_all(char* to, uint64_t bytes, Check& check) const {
  Pace pace(check);
  for (uint64_t got = 0; got < bytes;) {
    BP_TRY(pace.check());
    const ssize_t done = ::recv(socket_.get(), to + got, bytes - got, MSG_DONTWAIT);
    if (done > 0)
      got += static_cast<uint64_t>(done);
    else if (done < 0 && errno == EAGAIN)
      BP_TRY(wait_for(POLLIN));
    else if (done == 0 || errno != EINTR)
      return ended();
  }
  return {};
}

Result<Message> Channel::receive(uint64_t most, Check& check) const {
  Header header{};  // NOLINT(bugprone-invalid-enum-default-initialization): read below
  Message received;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> control{};
  uint64_t got = 0;
  Pace pace(check);
  while (got == 0) {
    BP_TRY(pace.check());
    iovec part{&header, sizeof header};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t done = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (done < 0 && errno == EAGAIN) {
      BP_TRY(wait_for(POLLIN));
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return ended();
    got = static_cast<uint64_t>(done);
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
      if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int number;
        std::memcpy(&number, CMSG_DATA(each) + i * sizeof number, sizeof number);
        received.files.emplace_back(number);
      }
    }
  }
  BP_TRY(read_all(reinterpret_cast<char*>(&header) + got, sizeof header - got, check));
  if (header.magic != kMagic || header.bytes > most || header.files != received.files.size())
    return Status(BP_CORRUPT, "the other process sent bytes that are not a message");
  received.operation = header.operation;
  // Allocates memory as bytes arrive, because the announced size cannot be trusted.
  constexpr uint64_t kPiece = 1 << 20;
  while (received.bytes.size() < header.bytes) {
    const uint64_t before = received.bytes.size(), piece = std::min(header.bytes - before, std::max(kPiece, before));
    received.bytes.resize(before + piece);
    BP_TRY(read_all(received.bytes.data() + before, piece, check));
  }
  return received;
}

}  // namespace backplane::isolate
