// SPDX-License-Identifier: Apache-2.0
#include "testing/standin/convolution.h"

namespace standin {
namespace {

// Advances `at` to the next position within `extents`; false after the last one.
bool next(Extents& at, const Extents& extents) {
  for (size_t d = extents.size(); d-- > 0;) {
    if (++at[d] < extents[d]) return true;
    at[d] = 0;
  }
  return false;
}

Extents spatial(const DenseTensor& tensor) {
  return {tensor.extents.begin() + 2, tensor.extents.end()};
}

}  // namespace

uint64_t DenseTensor::count() const {
  uint64_t all = extents.empty() ? 0 : 1;
  for (const int64_t extent : extents) all *= static_cast<uint64_t>(extent);
  return all;
}

bool Convolution::is_consistent() const {
  const size_t rank = x.extents.size();
  if (rank < 4 || w.extents.size() != rank || y.extents.size() != rank || stride.size() != rank - 2) return false;
  for (const Extents* each : {&dilation, &before, &after})
    if (each->size() != rank - 2) return false;
  if (x.extents[0] != y.extents[0] || w.extents[0] != y.extents[1]) return false;
  if (w.extents[1] == 0 || x.extents[1] % w.extents[1] != 0) return false;
  if (w.extents[0] % (x.extents[1] / w.extents[1]) != 0) return false;
  for (size_t d = 0; d < rank - 2; ++d) {
    const int64_t room = x.extents[d + 2] + before[d] + after[d] - (w.extents[d + 2] - 1) * dilation[d] - 1;
    if (room < 0 || room / stride[d] + 1 != y.extents[d + 2]) return false;
  }
  if (c.count() != 0 && c.extents != y.extents) return false;
  if (bias.count() != 0 && (bias.extents.size() != rank || bias.count() != static_cast<uint64_t>(y.extents[1])))
    return false;
  for (const DenseTensor* each : {&w, &y, &c, &bias})
    if (each->count() != 0 && each->type != x.type) return false;
  return true;
}

void Convolution::compute_all(bool is_tf32, const std::array<void*, 5>& data) const {
  const Extents in = spatial(x), kernel = spatial(w), out = spatial(y);
  const int64_t channels = w.extents[1], maps_of_group = y.extents[1] / (x.extents[1] / channels);
  uint64_t at = 0;
  Extents place(y.extents.size(), 0);
  do {
    const int64_t map = place[1], first = map / maps_of_group * channels;
    double sum = 0;
    for (int64_t channel = 0; channel < channels; ++channel) {
      Extents tap(kernel.size(), 0);
      auto weight = static_cast<uint64_t>(map * channels + channel);
      for (const int64_t extent : kernel) weight *= static_cast<uint64_t>(extent);
      do {
        int64_t source = place[0] * x.extents[1] + first + channel;
        bool inside = true;
        for (size_t d = 0; d < in.size(); ++d) {
          const int64_t position = place[d + 2] * stride[d] - before[d] + tap[d] * dilation[d];
          inside = inside && position >= 0 && position < in[d];
          source = source * in[d] + position;
        }
        if (inside)
          sum = static_cast<float>(sum + factor(is_tf32, load(x.type, data[0], static_cast<uint64_t>(source))) *
                                             factor(is_tf32, load(w.type, data[1], weight)));
        ++weight;
      } while (next(tap, kernel));
    }
    if (c.count() != 0) sum += load(c.type, data[3], at);
    if (bias.count() != 0) sum += load(bias.type, data[4], static_cast<uint64_t>(map));
    store(y.type, data[2], at++, relu && sum < 0 ? 0 : sum);
  } while (next(place, y.extents));
}

}  // namespace standin
