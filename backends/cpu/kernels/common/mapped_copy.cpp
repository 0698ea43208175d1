// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/mapped_copy.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "runtime/parallel.h"
#include "runtime/tables.h"

namespace backplane::cpu {

namespace {

constexpr int64_t kPart = int64_t{1} << 16;  // elements of a part of a row, whose map the run computes

}  // namespace

MappedCopy::MappedCopy(const PlanContext& context, const Shape& from, std::vector<Map> maps, int64_t element_size)
    : from_(from), maps_(std::move(maps)), element_size_(element_size) {
  while (!maps_.empty() && !maps_.back().position) maps_.pop_back();
  if (maps_.empty()) {  // the whole tensor is one block
    from_ = Shape{1, from.elements()};
    maps_.push_back({1, nullptr});
  }
  const int inner = static_cast<int>(maps_.size()) - 1;
  block_ = from_.elements(inner + 1, from_.rank());
  int64_t positions = 0;
  for (int d = 0; d <= inner; ++d) {
    const Map& map = maps_[static_cast<size_t>(d)];
    to_.push_back(map.position ? map.extent : from_[d]);
    positions += to_[d];
  }
  part_ = std::max<int64_t>(1, to_[inner]);
  // Growing vectors take up to twice their size, and a run is as large as two positions.
  if (!may_build_tables(context, product({positions, 4 * int64_t{sizeof(int64_t)}}))) {
    part_ = std::clamp<int64_t>(kPart / std::max<int64_t>(1, block_), 1, part_);
    return;
  }
  std::vector<std::vector<int64_t>> tables(static_cast<size_t>(inner) + 1);
  for (int d = 0; d < inner; ++d) {
    for (int64_t i = 0; i < to_[d]; ++i) tables[static_cast<size_t>(d)].push_back(position(d, i));
  }
  line_ = line_of(0, to_[inner]);
  tables_ = std::move(tables);
}

MappedCopy::Line MappedCopy::line_of(int64_t begin, int64_t end) const {
  Line line;
  std::vector<int64_t>& map = line.map;
  std::vector<Run>& runs = line.runs;
  const auto& position = maps_.back().position;
  map.reserve(static_cast<size_t>(end - begin));
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = position ? position(i) : i;
    map.push_back(from);
    if (!runs.empty() &&
        (from < 0 ? runs.back().from < 0 : runs.back().from >= 0 && from == runs.back().from + runs.back().count))
      ++runs.back().count;
    else
      runs.push_back({std::max<int64_t>(from, -1), 1});
  }
  const auto first_end = std::ranges::find_if(map, [&](int64_t from) { return from != map.front(); });
  const int64_t repeats = first_end - map.begin();
  bool repeated = block_ == 1 && (repeats == 2 || repeats == 4) && std::ssize(map) % repeats == 0;
  for (size_t i = 0; repeated && i < map.size(); ++i)
    repeated = map[i] == map.front() + static_cast<int64_t>(i) / repeats && map[i] >= 0;
  if (repeated) line.repeats = repeats;
  return line;
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
void MappedCopy::copy_row(const T* from, T* to, const Line& line, T filler) const {
  const std::vector<int64_t>& map = line.map;
  const auto n = static_cast<int64_t>(map.size());
  if (sizeof(T) == 4 && line.repeats != 0) {
    (line.repeats == 2 ? clone_of<twice_4> : clone_of<four_times_4>)(from + map.front(), to, n / line.repeats);
  } else if (block_ == 1 && static_cast<int64_t>(line.runs.size()) * 4 > n) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = map[static_cast<size_t>(i)];
      to[i] = at < 0 ? filler : from[at];
    }
  } else {
    for (const Run& run : line.runs) {
      if (run.from < 0)
        std::fill_n(to, run.count * block_, filler);
      else
        std::copy_n(from + run.from * block_, run.count * block_, to);
      to += run.count * block_;
    }
  }
}

template <class T, class Position>
void MappedCopy::copy_rows(const T* source, T* target, int64_t begin, int64_t end, int64_t first, const Line& line,
                           T filler, const Position& position) const {
  const int inner = to_.rank() - 1;
  const int64_t row = to_[inner] * block_, size = std::ssize(line.map) * block_;
  const Shape strides = strides_of(from_);
  int64_t last_base = -1;  // source offset of the previous row, which a nearest-neighbor enlargement repeats
  for (int64_t r = begin; r < end; ++r) {
    int64_t base = 0, rest = r;
    bool inside = true;
    for (int d = inner - 1; d >= 0; rest /= to_[d--]) {
      const int64_t from = position(d, rest % to_[d]);
      inside = inside && from >= 0;
      base += from * strides[d];
    }
    T* to = target + r * row + first * block_;
    if (!inside)
      std::fill_n(to, size, filler);
    else if (base == last_base)
      std::copy_n(to - row, size, to);
    else
      copy_row(source + base, to, line, filler);
    last_base = inside ? base : -1;
  }
}

void MappedCopy::operator()(const void* source, void* target, const void* fill) const {
  if (to_.elements() * block_ == 0) return;
  const int inner = to_.rank() - 1;
  const int64_t columns = to_[inner], rows = to_.elements() / columns;
  dispatch_size(element_size_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T filler{};
    if (fill != nullptr) std::memcpy(&filler, fill, sizeof(T));
    const auto* from = static_cast<const T*>(source);
    auto* to = static_cast<T*>(target);
    if (!tables_.empty()) {
      const auto position = [&](int d, int64_t i) { return tables_[static_cast<size_t>(d)][static_cast<size_t>(i)]; };
      parallel(rows, std::max<int64_t>(1, kCheapGrain / (columns * block_)),
               [&](int64_t begin, int64_t end) { copy_rows(from, to, begin, end, 0, line_, filler, position); });
      return;
    }
    // Computes all rows of the first part, then all rows of the next part.
    const auto position = [&](int d, int64_t i) { return this->position(d, i); };
    const int64_t parts = (columns + part_ - 1) / part_;
    parallel(parts * rows, std::max<int64_t>(1, kCheapGrain / (part_ * block_)), [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t part = begin / rows, row = begin % rows, count = std::min(rows - row, end - begin);
        const int64_t first = part * part_;
        const Line line = line_of(first, std::min(columns, first + part_));
        copy_rows(from, to, row, row + count, first, line, filler, position);
        begin += count;
      }
    });
  });
}

}  // namespace backplane::cpu
