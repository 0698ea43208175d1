// SPDX-License-Identifier: Apache-2.0
// Memory behind which nothing can be read.
#pragma once

#include <cstddef>
#include <vector>

namespace backplane::conform {

// Pieces of memory, zeroed, each of which ends at the end of a page, before one that cannot be accessed: what reads or
// writes beyond a piece crashes. So does a plugin of a newer ABI that reads elements of an array in its own size.
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
