// SPDX-License-Identifier: Apache-2.0
// Oracles of operators of com.microsoft, which ONNX Runtime defines.
#include <algorithm>

#include "judge/tracked.h"

namespace backplane::conform {
namespace {

// Adds the embeddings of each word, its position and its segment, and normalizes the sum. The second output has the
// number of ones in the mask of each batch, the third the sums.
References embed_layer_normalization(const Call& call) {
  const Array &ids = call.in(0, 2), &words = call.in(2, 2), &positions = call.in(3, 2);
  require(ids.rank() == 2 && words.rank() == 2 && positions.rank() == 2, "the ids or embeddings are not matrices");
  const int64_t batch = ids.extents[0], length = ids.extents[1], width = words.extents[1];
  require(is_float(words.dtype) && width > 0, "the embeddings are not of floats");
  require(!call.has(1) || call.has(4), "segment_ids has no segment_embedding");
  for (const size_t slot : {1, 7}) require(!call.has(slot) || call.in(slot).extents == ids.extents, "ids do not fit");
  const std::vector<double>&gamma = call.vector(5, width), &beta = call.vector(6, width);
  const auto element = [&](const Array& table, double row, int64_t i) { return Tracked(table.at({whole(row), i})); };
  const Tracked epsilon(call.real("epsilon", 1e-12f)), count(static_cast<double>(width));
  std::vector<Tracked> results, sums;
  Array lengths(BP_DTYPE_INT32, {batch});
  for_each_index(ids.extents, [&](const Index& at) {
    const double position = call.has(8) ? call.in(8).broadcast_at(at) : static_cast<double>(at[1]);
    TrackedSum total(words.dtype), squares(words.dtype);
    const size_t first = sums.size();
    for (int64_t i = 0; i < width; ++i) {
      Tracked sum = element(words, ids.at(at), i) + element(positions, position, i);
      if (call.has(4)) sum = sum + element(call.in(4), call.has(1) ? call.in(1).at(at) : 0, i);
      sums.push_back(sum);
      total.add(sum);
    }
    const Tracked mean = total.result() / count;
    for (size_t i = first; i < sums.size(); ++i) squares.add(sums[i] - mean, sums[i] - mean);
    const Tracked deviation = sqrt(squares.result() / count + epsilon);
    for (size_t i = first; i < sums.size(); ++i)
      results.push_back((sums[i] - mean) / deviation * Tracked(gamma[i - first]) + Tracked(beta[i - first]));
    if (call.has(7)) lengths.at({at[0]}) += call.in(7).at(at) == 1;
  });
  const Extents shape = {batch, length, width};
  return {tracked_reference(words.dtype, shape, results), Reference(std::move(lengths), Rule::exact()),
          tracked_reference(words.dtype, shape, sums)};
}

// Moves the last axis to the second place, or the reverse.
Extents moved(const Extents& extents, bool to_front) {
  Extents result = extents;
  if (to_front)
    std::rotate(result.begin() + 1, result.end() - 1, result.end());
  else
    std::rotate(result.begin() + 1, result.begin() + 2, result.end());
  return result;
}
Array with_channels_first(const Array& x) {
  Array result(x.dtype, moved(x.extents, true));
  for_each_index(x.extents, [&](const Index& at) { result.at(moved(at, true)) = x.at(at); });
  return result;
}

// The Conv of X [N, positions…, C] and W [M, kernel…, C / group].
References nhwc_conv(const Call& call) {
  const Array x = with_channels_first(call.in(0, 3)), w = with_channels_first(call.in(1, 3));
  std::vector<const Array*> inputs = {&x, &w};
  if (call.has(2)) inputs.push_back(&call.in(2));
  const Reference conv = compute("Conv", Call(inputs, call.attributes(), 1)).at(0);
  Reference result = conv;
  result.value.extents = moved(conv.value.extents, false);
  result.scale.clear();
  Array scales(BP_DTYPE_DOUBLE, conv.value.extents);
  scales.values = conv.scale;
  for_each_index(result.value.extents, [&](const Index& at) {
    result.value.at(at) = conv.value.at(moved(at, true));
    result.scale.push_back(scales.at(moved(at, true)));
  });
  return {result};
}

constexpr std::string_view kMicrosoft = "com.microsoft";
const Operator kOperators[] = {
    {"EmbedLayerNormalization", {1}, embed_layer_normalization, kMicrosoft},
    {"NhwcConv", {1}, nhwc_conv, kMicrosoft},
};

}  // namespace

std::span<const Operator> microsoft_operators() {
  return kOperators;
}

}  // namespace backplane::conform
