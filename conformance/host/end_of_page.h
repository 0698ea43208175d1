// SPDX-License-Identifier: Apache-2.0
// Memory with an inaccessible page after it.
#pragma once

#include <cstddef>
#include <vector>

namespace backplane::conform {

// Zeroed pieces of memory. Each piece ends at the end of a page, and the next page cannot be accessed, so an access
// just beyond a piece crashes. This also detects a plugin of a newer ABI that steps through an array by the size
// of its own, longer struct. A piece begins at an address that its size determines, so only its size aligns it.
class EndOfPage {
 public:
  EndOfPage() = default;
  // Throws std::bad_alloc.
  explicit EndOfPage(const std::vector<size_t>& sizes);
  EndOfPage(const EndOfPage&) = delete;
  EndOfPage& operator=(const EndOfPage&) = delete;
  EndOfPage(EndOfPage&& other) noexcept;
  EndOfPage& operator=(EndOfPage&& other) noexcept;
  ~EndOfPage();

  std::byte* operator[](size_t piece) const { return pieces_[piece]; }

 private:
  void* block_ = nullptr;
  size_t bytes_ = 0;
  std::vector<std::byte*> pieces_;
};

}  // namespace backplane::conform
