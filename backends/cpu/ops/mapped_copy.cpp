// SPDX-License-Identifier: Apache-2.0
#include "ops/mapped_copy.h"

#include <cstring>
#include <numeric>

#include "ops/support.h"

namespace backplane::cpu {

MappedCopy::MappedCopy(const Shape& from, std::vector<std::vector<int64_t>> maps, int64_t element_size)
    : from_(from), maps_(std::move(maps)), element_size_(element_size) {
  while (!maps_.empty() && maps_.back().empty()) maps_.pop_back();
  if (maps_.empty()) {  // everything is one block
    from_ = Shape{1, from.elements()};
    maps_.push_back({0});
  }
  block_ = from_.elements(static_cast<int>(maps_.size()), from_.rank());
  for (size_t d = 0; d < maps_.size(); ++d) {
    if (maps_[d].empty()) {
      maps_[d].resize(static_cast<size_t>(from_[static_cast<int>(d)]));
      std::iota(maps_[d].begin(), maps_[d].end(), 0);
    }
    to_.push_back(static_cast<int64_t>(maps_[d].size()));
  }
}

void MappedCopy::operator()(const void* source, void* target, const void* fill) const {
  if (to_.elements() * block_ == 0) return;
  const int inner = to_.rank() - 1;
  const int64_t row = to_[inner];
  const Shape strides = strides_of(from_);
  dispatch_size(element_size_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T filler{};
    if (fill != nullptr) std::memcpy(&filler, fill, sizeof(T));
    parallel(to_.elements() / row, std::max<int64_t>(1, kCheapGrain / (row * block_)), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t base = 0, rest = r;
        bool inside = true;
        for (int d = inner - 1; d >= 0; rest /= to_[d--]) {
          const int64_t from = maps_[static_cast<size_t>(d)][static_cast<size_t>(rest % to_[d])];
          inside = inside && from >= 0;
          base += from * strides[d];
        }
        T* to = static_cast<T*>(target) + r * row * block_;
        if (!inside) {
          std::fill_n(to, row * block_, filler);
          continue;
        }
        const T* line = static_cast<const T*>(source) + base;
        for (int64_t from : maps_.back()) {
          if (from < 0)
            std::fill_n(to, block_, filler);
          else if (block_ == 1)
            *to = line[from];
          else
            std::memcpy(to, line + from * block_, static_cast<size_t>(block_) * sizeof(T));
          to += block_;
        }
      }
    });
  });
}

}  // namespace backplane::cpu
