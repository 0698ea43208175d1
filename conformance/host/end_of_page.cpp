// SPDX-License-Identifier: Apache-2.0
#include "host/end_of_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

namespace backplane::conform {

EndOfPage::EndOfPage(const std::vector<size_t>& sizes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto rounded = [page](size_t size) { return (size + page - 1) / page * page; };
  for (const size_t size : sizes) bytes_ += rounded(size) + page;
  if (bytes_ == 0) return;
  pieces_.reserve(sizes.size());
  block_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block_ == MAP_FAILED) throw std::bad_alloc();
  auto* at = static_cast<std::byte*>(block_);
  for (const size_t size : sizes) {
    if (size != 0 && mprotect(at, rounded(size), PROT_READ | PROT_WRITE) != 0) {
      munmap(block_, bytes_);
      throw std::bad_alloc();
    }
    at += rounded(size);
    pieces_.push_back(at - size);
    at += page;
  }
}

EndOfPage::EndOfPage(EndOfPage&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      pieces_(std::move(other.pieces_)) {}

EndOfPage& EndOfPage::operator=(EndOfPage&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(bytes_, other.bytes_);
  std::swap(pieces_, other.pieces_);
  return *this;
}

EndOfPage::~EndOfPage() {
  if (block_ != nullptr) munmap(block_, bytes_);
}

}  // namespace backplane::conform
