// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/mapped_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

MappedCopy::MappedCopy(const Shape& from, std::vector<std::vector<int64_t>> maps, int64_t element_size)
    : from_(from), maps_(std::move(maps)), element_size_(element_size) {
  while (!maps_.empty() && maps_.back().empty()) maps_.pop_back();
  if (maps_.empty()) {  // the whole tensor is one block
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
  const std::vector<int64_t>& last = maps_.back();
  for (int64_t from : last) {
    if (!runs_.empty() &&
        (from < 0 ? runs_.back().from < 0 : runs_.back().from >= 0 && from == runs_.back().from + runs_.back().count))
      ++runs_.back().count;
    else
      runs_.push_back({std::max<int64_t>(from, -1), 1});
  }
  const auto first_end = std::ranges::find_if(last, [&](int64_t from) { return from != last.front(); });
  const int64_t repeats = first_end - last.begin();
  bool repeated = block_ == 1 && (repeats == 2 || repeats == 4) && static_cast<int64_t>(last.size()) % repeats == 0;
  for (size_t i = 0; repeated && i < last.size(); ++i)
    repeated = last[i] == last.front() + static_cast<int64_t>(i) / repeats && last[i] >= 0;
  if (repeated) repeats_ = repeats;
}

namespace {

// Writes each element `kTimes` times.
template <class T, int kTimes>
[[gnu::always_inline]] inline void repeat(const void* from, void* to, int64_t n) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < kTimes; ++k) y[i * kTimes + k] = x[i];
  }
}
CLONED void twice_4(const void* from, void* to, int64_t n) {
  repeat<uint32_t, 2>(from, to, n);
}
CLONED void four_times_4(const void* from, void* to, int64_t n) {
  repeat<uint32_t, 4>(from, to, n);
}

}  // namespace

template <class T>
void MappedCopy::copy_row(const T* line, T* to, T filler) const {
  const std::vector<int64_t>& map = maps_.back();
  const auto n = static_cast<int64_t>(map.size());
  if (sizeof(T) == 4 && repeats_ != 0) {
    (repeats_ == 2 ? clone_of<twice_4> : clone_of<four_times_4>)(line + map.front(), to, n / repeats_);
  } else if (block_ == 1 && static_cast<int64_t>(runs_.size()) * 4 > n) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t from = map[static_cast<size_t>(i)];
      to[i] = from < 0 ? filler : line[from];
    }
  } else {
    for (const Run& run : runs_) {
      if (run.from < 0)
        std::fill_n(to, run.count * block_, filler);
      else
        std::copy_n(line + run.from * block_, run.count * block_, to);
      to += run.count * block_;
    }
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
      int64_t last_base = -1;  // source offset of the previous row, which a nearest-neighbor enlargement repeats
      for (int64_t r = begin; r < end; ++r) {
        int64_t base = 0, rest = r;
        bool inside = true;
        for (int d = inner - 1; d >= 0; rest /= to_[d--]) {
          const int64_t from = maps_[static_cast<size_t>(d)][static_cast<size_t>(rest % to_[d])];
          inside = inside && from >= 0;
          base += from * strides[d];
        }
        T* to = static_cast<T*>(target) + r * row * block_;
        if (!inside)
          std::fill_n(to, row * block_, filler);
        else if (base == last_base)
          std::copy_n(to - row * block_, row * block_, to);
        else
          copy_row(static_cast<const T*>(source) + base, to, filler);
        last_base = inside ? base : -1;
      }
    });
  });
}

}  // namespace backplane::cpu
