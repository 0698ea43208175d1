// SPDX-License-Identifier: Apache-2.0
// Operators of object detection: RoiAlign, MaxRoiPool, NonMaxSuppression.
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/common/function_kernel.h"
#include "kernels/common/index.h"
#include "kernels/common/support.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

// ---- RoiAlign ------------------------------------------------------------------------------------------------------

struct Align {
  bool half_pixel, max;
  int64_t height, width, sampling_ratio;
  double spatial_scale;
};

// The four pixels around a position, clamped to the image, and their weights. The weights are 0 if the position is more
// than one pixel outside the image.
struct Bilinear {
  int64_t at[4] = {0, 0, 0, 0};
  double weight[4] = {0, 0, 0, 0};

  Bilinear(double y, double x, int64_t height, int64_t width) {
    if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return;
    y = std::clamp(y, 0.0, static_cast<double>(height - 1));
    x = std::clamp(x, 0.0, static_cast<double>(width - 1));
    const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
    const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
    const double dy = y - static_cast<double>(top), dx = x - static_cast<double>(left);
    const int64_t positions[] = {top * width + left, top * width + right, bottom * width + left,
                                 bottom * width + right};
    const double weights[] = {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx};
    std::copy_n(positions, 4, at);
    std::copy_n(weights, 4, weight);
  }
};

template <class T>
std::optional<std::string> roi_align(const Align& a, Tensors in, Tensors out) {
  const Shape& image = in[0].shape;
  const int64_t channels = image[1], height = image[2], width = image[3], rois = in[1].shape[0];
  const Indices batch(in[2]);
  for (int64_t r = 0; r < rois; ++r)
    if (batch.raw(r) < 0 || batch.raw(r) >= image[0]) return batch.out_of_range(r, image[0]);
  const double offset = a.half_pixel ? 0.5 : 0;
  parallel(rois * a.height * a.width, 16, [&](int64_t begin, int64_t end) {
    std::vector<Bilinear> samples;
    Pace pace;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i / (a.height * a.width), py = i / a.width % a.height, px = i % a.width;
      const T* roi = in[1].as<T>() + r * 4;
      double edge[4];
      for (int k = 0; k < 4; ++k) edge[k] = static_cast<double>(roi[k]) * a.spatial_scale - offset;
      double roi_width = edge[2] - edge[0], roi_height = edge[3] - edge[1];
      if (!a.half_pixel) {
        roi_width = std::max(roi_width, 1.0);
        roi_height = std::max(roi_height, 1.0);
      }
      const double bin_height = roi_height / static_cast<double>(a.height),
                   bin_width = roi_width / static_cast<double>(a.width);
      const auto grid = [&](double bin) {
        if (a.sampling_ratio > 0) return a.sampling_ratio;
        return bin > 1 ? static_cast<int64_t>(std::ceil(std::min(bin, 1024.0))) : int64_t{1};
      };
      const int64_t rows = grid(bin_height), columns = grid(bin_width);
      samples.clear();
      pace.spend(4 * rows * columns);
      for (int64_t sy = 0; sy < rows; ++sy)
        for (int64_t sx = 0; sx < columns; ++sx)
          samples.emplace_back(
              edge[1] +
                  (static_cast<double>(py) + (static_cast<double>(sy) + 0.5) / static_cast<double>(rows)) * bin_height,
              edge[0] + (static_cast<double>(px) + (static_cast<double>(sx) + 0.5) / static_cast<double>(columns)) *
                            bin_width,
              height, width);
      for (int64_t c = 0; c < channels; ++c) {
        const T* plane = in[0].as<T>() + (batch(r, image[0]) * channels + c) * height * width;
        double sum = 0, largest = -std::numeric_limits<double>::infinity();
        pace.spend(4 * rows * columns);
        for (const Bilinear& s : samples)
          for (int k = 0; k < 4; ++k) {
            const double value = s.weight[k] * static_cast<double>(plane[s.at[k]]);
            sum += value;
            largest = std::max(largest, value);
          }
        const double result = a.max ? largest : sum / static_cast<double>(samples.size());
        out[0].as<T>()[((r * channels + c) * a.height + py) * a.width + px] =
            static_cast<T>(static_cast<compute_t<T>>(result));
      }
    }
  });
  return std::nullopt;
}

Verdict supports_align(const Node& node) {
  if (Verdict v = attribute_in(node, "mode", "avg", {"avg", "max"}); !v) return v;
  if (Verdict v =
          attribute_in(node, "coordinate_transformation_mode", "half_pixel", {"half_pixel", "output_half_pixel"});
      !v)
    return v;
  for (const char* name : {"output_height", "output_width"})
    if (const int64_t v = node.attr(name, int64_t{1}); v < 1 || v > 1 << 16)
      return no(BP_REASON_ATTRIBUTE, std::string(name) + " is " + std::to_string(v) + "; it must be 1 to 65536");
  if (const int64_t v = node.attr("sampling_ratio", int64_t{0}); v < 0 || v > 1024)
    return no(BP_REASON_ATTRIBUTE, "sampling_ratio is " + std::to_string(v) + "; it must be 0 to 1024");
  if (Verdict v = accepts(node, 3, {kFloatTypes, kFloatTypes, just(BP_DTYPE_INT64)}); !v) return v;
  return same_type(node, 0, 1);
}

std::unique_ptr<Kernel> create_align(const Node& node) {
  const Align a{node.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel",
                node.attr("mode", "avg") == "max",
                node.attr("output_height", int64_t{1}),
                node.attr("output_width", int64_t{1}),
                node.attr("sampling_ratio", int64_t{0}),
                node.attr("spatial_scale", 1.0f)};
  return make_kernel([a](Tensors inputs) -> Plan {
    const Shape &image = inputs[0].shape, &rois = inputs[1].shape;
    if (image.rank() != 4 || image[2] == 0 || image[3] == 0)
      return fail("the image has shape " + to_string(image) +
                  "; it must be [batch, channels, height, width], not empty");
    if (rois.rank() != 2 || rois[1] != 4) return fail("rois has shape " + to_string(rois) + "; it must be [count, 4]");
    if (!(inputs[2].shape == Shape{rois[0]}))
      return fail("batch_indices has shape " + to_string(inputs[2].shape) + "; rois needs " +
                  to_string(Shape{rois[0]}));
    return make_plan({{rois[0], image[1], a.height, a.width}}, [a](Tensors in, Tensors out) {
      return dispatch<Floats>(in[0].dtype,
                              [&](auto tag) { return roi_align<typename decltype(tag)::type>(a, in, out); });
    });
  });
}

// ---- MaxRoiPool ----------------------------------------------------------------------------------------------------

template <class T>
std::optional<std::string> max_roi_pool(Tensors in, Tensors out, int64_t pooled_height, int64_t pooled_width,
                                        double scale) {
  const Shape& image = in[0].shape;
  const int64_t channels = image[1], height = image[2], width = image[3];
  Pace pace;
  for (int64_t r = 0; r < in[1].shape[0]; ++r) {
    const T* roi = in[1].as<T>() + r * 5;
    const double batch = static_cast<double>(roi[0]);
    if (!(batch >= 0 && batch < static_cast<double>(image[0])))
      return "batch index " + std::to_string(batch) + " is out of range for " + std::to_string(image[0]) + " images";
    int64_t edge[4];  // left, top, right, bottom
    for (int k = 0; k < 4; ++k) {
      const double v = std::round(static_cast<double>(roi[k + 1]) * scale);
      edge[k] = std::isnan(v) ? 0 : static_cast<int64_t>(std::clamp(v, -0x1p30, 0x1p30));
    }
    const double bin_height =
        static_cast<double>(std::max<int64_t>(edge[3] - edge[1] + 1, 1)) / static_cast<double>(pooled_height);
    const double bin_width =
        static_cast<double>(std::max<int64_t>(edge[2] - edge[0] + 1, 1)) / static_cast<double>(pooled_width);
    const auto range = [](int64_t i, double bin, int64_t start, int64_t extent) {
      const auto first = static_cast<int64_t>(std::floor(static_cast<double>(i) * bin)) + start;
      const auto last = static_cast<int64_t>(std::ceil(static_cast<double>(i + 1) * bin)) + start;
      return std::pair(std::clamp<int64_t>(first, 0, extent), std::clamp<int64_t>(last, 0, extent));
    };
    for (int64_t i = 0; i < channels * pooled_height * pooled_width; ++i) {
      const int64_t c = i / (pooled_height * pooled_width);
      const auto [top, bottom] = range(i / pooled_width % pooled_height, bin_height, edge[1], height);
      const auto [left, right] = range(i % pooled_width, bin_width, edge[0], width);
      const T* plane = in[0].as<T>() + (static_cast<int64_t>(batch) * channels + c) * height * width;
      pace.spend(4 + std::max<int64_t>(0, bottom - top) * std::max<int64_t>(0, right - left));
      bool any = false;
      T largest{};
      for (int64_t y = top; y < bottom; ++y)
        for (int64_t x = left; x < right; ++x)
          if (!any || static_cast<compute_t<T>>(plane[y * width + x]) > static_cast<compute_t<T>>(largest)) {
            largest = plane[y * width + x];
            any = true;
          }
      out[0].as<T>()[r * channels * pooled_height * pooled_width + i] = largest;
    }
  }
  return std::nullopt;
}

Verdict supports_pool(const Node& node) {
  const std::vector<int64_t> pooled = node.ints("pooled_shape");
  if (pooled.size() != 2)
    return no(BP_REASON_ATTRIBUTE, "pooled_shape has " + std::to_string(pooled.size()) + " numbers; it must have 2");
  if (pooled[0] < 1 || pooled[1] < 1)
    return no(BP_REASON_ATTRIBUTE, "pooled_shape is [" + std::to_string(pooled[0]) + "," + std::to_string(pooled[1]) +
                                       "]; its numbers must be positive");
  if (Verdict v = accepts(node, 2, {kFloatTypes, kFloatTypes}); !v) return v;
  return same_type(node, 0, 1);
}

std::unique_ptr<Kernel> create_pool(const Node& node) {
  return make_kernel(
      [pooled = node.ints("pooled_shape"), scale = node.attr("spatial_scale", 1.0f)](Tensors inputs) -> Plan {
        const Shape &image = inputs[0].shape, &rois = inputs[1].shape;
        if (image.rank() != 4 || rois.rank() != 2 || rois[1] != 5)
          return fail("rois of shape " + to_string(rois) + " do not fit an image of shape " + to_string(image) +
                      "; they must be [count, 5] and [batch, channels, height, width]");
        return make_plan({{rois[0], image[1], pooled[0], pooled[1]}}, [=](Tensors in, Tensors out) {
          return dispatch<Floats>(in[0].dtype, [&](auto tag) {
            return max_roi_pool<typename decltype(tag)::type>(in, out, pooled[0], pooled[1], scale);
          });
        });
      });
}

// ---- NonMaxSuppression ---------------------------------------------------------------------------------------------

struct Box {
  float top, left, bottom, right;

  Box(const float* b, bool centre) {
    if (centre) {
      left = b[0] - b[2] / 2, right = b[0] + b[2] / 2, top = b[1] - b[3] / 2, bottom = b[1] + b[3] / 2;
    } else {
      top = std::min(b[0], b[2]), bottom = std::max(b[0], b[2]), left = std::min(b[1], b[3]),
      right = std::max(b[1], b[3]);
    }
  }
  float area() const { return (bottom - top) * (right - left); }
};

float overlap(const Box& a, const Box& b) {  // intersection over union
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top),
              width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0)) return 0;
  const float common = height * width, joint = a.area() + b.area() - common;
  return joint > 0 ? common / joint : 0;
}

Verdict supports_nms(const Node& node) {
  constexpr bp_dtype_set_t kFloats = just(BP_DTYPE_FLOAT);
  return accepts(node, 2, {kFloats, kFloats, just(BP_DTYPE_INT64), kFloats, kFloats});
}

std::unique_ptr<Kernel> create_nms(const Node& node) {
  return make_kernel([centre = node.attr("center_point_box", int64_t{0}) != 0](Tensors inputs) -> Plan {
    for (const Tensor& input : inputs)
      if (input.present() && !known(input)) return deferred();
    const Shape &boxes = inputs[0].shape, &scores = inputs[1].shape;
    if (boxes.rank() != 3 || scores.rank() != 3 || boxes[2] != 4 || scores[0] != boxes[0] || scores[2] != boxes[1])
      return fail("boxes of shape " + to_string(boxes) + " do not fit scores of shape " + to_string(scores) +
                  "; they must be [batch, count, 4] and [batch, classes, count]");
    const auto number = [&](size_t slot, double fallback) {
      const Tensor t = at(inputs, slot);
      return t.present() && t.shape.elements() > 0 ? scalar(t) : fallback;
    };
    const auto most = static_cast<int64_t>(std::clamp(number(2, 0), 0.0, 0x1p40));
    const auto iou_threshold = static_cast<float>(number(3, 0));
    const double score_threshold = number(4, -std::numeric_limits<double>::infinity());
    const int64_t n = boxes[1];
    using Selection = std::array<int64_t, 3>;
    std::vector<Selection> selected;
    require_memory(n, sizeof(int64_t) + sizeof(Box));
    std::vector<int64_t> order;
    Pace pace;
    for (int64_t batch = 0; batch < scores[0] && scores.elements() > 0; ++batch)
      for (int64_t c = 0; c < scores[1]; ++c) {
        pace.spend(n);
        require_memory(2 * (std::ssize(selected) + std::min(n, most)),
                       sizeof(Selection));  // a vector grows by doubling
        const float* score = inputs[1].as<float>() + (batch * scores[1] + c) * n;
        order.clear();
        for (int64_t i = 0; i < n; ++i)
          if (static_cast<double>(score[i]) > score_threshold || (score[i] == score[i] && !at(inputs, 4).present()))
            order.push_back(i);
        std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return score[a] > score[b]; });
        std::vector<Box> kept;
        for (int64_t i : order) {
          if (static_cast<int64_t>(kept.size()) >= most) break;
          pace.spend(4 * static_cast<int64_t>(kept.size()));
          const Box box(inputs[0].as<float>() + (batch * n + i) * 4, centre);
          if (std::ranges::any_of(kept, [&](const Box& k) { return overlap(box, k) > iou_threshold; })) continue;
          kept.push_back(box);
          selected.push_back({batch, c, i});
        }
      }
    return make_plan({{static_cast<int64_t>(selected.size()), 3}}, [selected](Tensors, Tensors out) {
      int64_t* target = out[0].as<int64_t>();
      for (const auto& row : selected) target = std::ranges::copy(row, target).out;
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> region_rows() {
  static constexpr Row kRows[] = {
      Row{"", "RoiAlign", 16, supports_align, create_align}.in_fp32(),
      {"", "MaxRoiPool", 1, supports_pool, create_pool},
      {"", "NonMaxSuppression", 10, supports_nms, create_nms},
  };
  return kRows;
}

}  // namespace backplane::cpu
