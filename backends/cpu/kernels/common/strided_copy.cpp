// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/strided_copy.h"

#include <cstring>

#include "kernels/common/support.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

StridedCopy::StridedCopy(std::span<const int64_t> extents, std::span<const int64_t> strides, int64_t offset,
                         int64_t element_size)
    : offset_(offset), element_size_(element_size) {
  for (size_t i = 0; i < extents.size(); ++i) {
    elements_ *= extents[i];
    if (extents[i] == 1) continue;
    if (!extents_.empty() && strides_.back() == strides[i] * extents[i]) {
      extents_.back() *= extents[i];
      strides_.back() = strides[i];
    } else {
      extents_.push_back(extents[i]);
      strides_.push_back(strides[i]);
    }
  }
  if (extents_.empty()) {
    extents_.push_back(1);
    strides_.push_back(1);
  }
}

// Copies innermost rows [first, last) of the target.
template <class T>
void StridedCopy::copy_rows(const T* source, T* target, int64_t first, int64_t last) const {
  const size_t inner = extents_.size() - 1;
  const int64_t n = extents_[inner], stride = strides_[inner];
  std::vector<int64_t> index(inner);
  const T* from = source + offset_;
  for (size_t d = inner, rest = static_cast<size_t>(first); d-- > 0; rest /= static_cast<size_t>(extents_[d])) {
    index[d] = static_cast<int64_t>(rest % static_cast<size_t>(extents_[d]));
    from += index[d] * strides_[d];
  }
  T* to = target + first * n;
  for (int64_t row = first; row < last; ++row, to += n) {
    if (stride == 1)
      std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
    else if (stride == 0)
      std::fill_n(to, n, *from);
    else
      for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
    for (size_t d = inner; d-- > 0;) {
      from += strides_[d];
      if (++index[d] < extents_[d]) break;
      from -= strides_[d] * extents_[d];
      index[d] = 0;
    }
  }
}

// Copies a transposition, where dimension `unit` has stride 1 in the source. Works on tiles of 16 × 16 elements, whose
// cache lines, in both tensors, stay in the cache.
template <class T>
void StridedCopy::copy_tiles(const T* source, T* target, size_t unit) const {
  constexpr int64_t kTile = 16;
  const size_t inner = extents_.size() - 1;
  const int64_t rows = extents_[unit], columns = extents_[inner], column_stride = strides_[inner];
  const int64_t row_tiles = (rows + kTile - 1) / kTile;
  int64_t outer = 1;
  for (size_t d = 0; d < inner; ++d)
    if (d != unit) outer *= extents_[d];
  int64_t row_pitch = 1;  // distance of rows in the target, in elements
  for (size_t d = unit + 1; d <= inner; ++d) row_pitch *= extents_[d];
  parallel(outer * row_tiles, std::max<int64_t>(1, kCheapGrain / (kTile * columns)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first_row = task % row_tiles * kTile, last_row = std::min(rows, first_row + kTile);
      const T* from = source + offset_;
      T* to = target;
      int64_t rest = task / row_tiles, pitch = columns;
      for (size_t d = inner; d-- > 0; pitch *= extents_[d]) {
        if (d == unit) continue;
        from += rest % extents_[d] * strides_[d];
        to += rest % extents_[d] * pitch;
        rest /= extents_[d];
      }
      for (int64_t first = 0; first < columns; first += kTile) {
        const int64_t last = std::min(columns, first + kTile);
        for (int64_t row = first_row; row < last_row; ++row)
          for (int64_t column = first; column < last; ++column)
            to[row * row_pitch + column] = from[row + column * column_stride];
      }
    }
  });
}

void StridedCopy::operator()(const void* source, void* target) const {
  if (elements_ == 0) return;
  const size_t inner = extents_.size() - 1;
  const auto* bytes = static_cast<const char*>(source);
  if (strides_[inner] == 1 && inner == 0) {
    parallel(elements_ * element_size_, 8 * kCheapGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(target) + begin, bytes + offset_ * element_size_ + begin,
                  static_cast<size_t>(end - begin));
    });
    return;
  }
  size_t unit = inner;  // dimension with stride 1 in the source
  for (size_t d = 0; d < inner; ++d)
    if (strides_[d] == 1) unit = d;
  dispatch_size(element_size_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* from = static_cast<const T*>(source);
    auto* to = static_cast<T*>(target);
    if (strides_[inner] != 1 && strides_[inner] != 0 && unit != inner && extents_[unit] >= 4)
      return copy_tiles(from, to, unit);
    parallel(elements_ / extents_[inner], std::max<int64_t>(1, kCheapGrain / extents_[inner]),
             [&](int64_t begin, int64_t end) { copy_rows(from, to, begin, end); });
  });
}

}  // namespace backplane::cpu
