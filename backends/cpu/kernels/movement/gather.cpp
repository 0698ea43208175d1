// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements, GatherND, ReverseSequence: copy selected elements or blocks.
#include <atomic>
#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/index.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"

namespace backplane::cpu {
namespace {

Verdict supports_gather(const Node& node) {
  return accepts(node, 2, {kByteTypes, kIndexTypes});
}

std::unique_ptr<Kernel> create_gather(const Node& node) {
  return make_kernel(ReadsBytes{0}, [axis_attribute = node.attr("axis", int64_t{0})](Tensors inputs) -> Plan {
    const Shape &data = inputs[0].shape, &indices = inputs[1].shape;
    const int axis = axis_of(axis_attribute, data.rank());
    if (axis < 0) return bad_axis(axis_attribute, data.rank());
    if (data.rank() - 1 + indices.rank() > BP_MAX_RANK)
      return fail("the rank of the result, " + std::to_string(data.rank() - 1 + indices.rank()) +
                  ", exceeds the maximum of 32");
    Shape to;
    for (int i = 0; i < axis; ++i) to.push_back(data[i]);
    for (int64_t extent : indices) to.push_back(extent);
    for (int i = axis + 1; i < data.rank(); ++i) to.push_back(data[i]);
    const int64_t outer = data.elements(0, axis), extent = data[axis], count = indices.elements();
    const int64_t block = data.elements(axis + 1, data.rank()) * bytes_of(inputs[0].dtype, 1);
    return make_plan({to}, [=](Tensors in, Tensors out) -> std::optional<std::string> {
      const Indices index(in[1]);
      for (int64_t i = 0; i < count; ++i)
        if (!index.in_range(i, extent)) return index.out_of_range(i, extent);
      const char* from = in[0].as<char>();
      char* target = out[0].as<char>();
      parallel(outer * count, std::max<int64_t>(1, 4 * kCheapGrain / std::max<int64_t>(1, block)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   std::memcpy(target + i * block, from + (i / count * extent + index(i % count, extent)) * block,
                               static_cast<size_t>(block));
               });
      return std::nullopt;
    });
  });
}

// ---- GatherElements ------------------------------------------------------------------------------------------------

// The smallest and the largest index of an array; the loops that find them are vectorized.
struct Extremes {
  int64_t low, high;
};
template <class T>
[[gnu::always_inline]] inline Extremes extremes_of(const T* x, int64_t n) {
  T low = x[0], high = x[0];
  for (int64_t i = 0; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  return {low, high};
}
CLONED Extremes extremes_of_narrow(const int32_t* x, int64_t n) {
  return extremes_of(x, n);
}
CLONED Extremes extremes_of_wide(const int64_t* x, int64_t n) {
  return extremes_of(x, n);
}

bool all_in_range(const Tensor& indices, int64_t n, int64_t extent) {
  std::atomic<bool> fine = true;
  parallel(n, kCheapGrain, [&](int64_t begin, int64_t end) {
    const Extremes e = indices.dtype == BP_DTYPE_INT32
                           ? clone_of<extremes_of_narrow>(indices.as<int32_t>() + begin, end - begin)
                           : clone_of<extremes_of_wide>(indices.as<int64_t>() + begin, end - begin);
    if (e.low < -extent || e.high >= extent) fine = false;
  });
  return fine;
}

// Gathers rows along the innermost dimension of the indices. From one index to the next, the position in the data also
// advances by 1 along that dimension, unless that dimension is `axis`.
template <class T, class I>
void gather_rows_by(const Shape& data, const Shape& to, int axis, const T* from, const I* indices, T* target) {
  const int last = to.rank() - 1;
  const int64_t width = to[last], extent = data[axis];
  const Shape strides = strides_of(data);
  const int64_t along = strides[axis], advance = axis == last ? 0 : 1;
  parallel(to.elements() / width, 1 + kCheapGrain / width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t base = 0, rest = row;
      for (int d = last - 1; d >= 0; rest /= to[d--]) base += d == axis ? 0 : rest % to[d] * strides[d];
      const T* source = from + base;
      const I* index = indices + row * width;
      T* result = target + row * width;
      for (int64_t i = 0; i < width; ++i) {
        result[i] = source[i * advance + position_of(index + i, extent) * along];
      }
    }
  });
}

template <class T>
void gather_rows(const Shape& data, const Shape& to, int axis, const T* from, const Tensor& indices, T* target) {
  if (indices.dtype == BP_DTYPE_INT32)
    gather_rows_by(data, to, axis, from, indices.as<int32_t>(), target);
  else
    gather_rows_by(data, to, axis, from, indices.as<int64_t>(), target);
}

std::unique_ptr<Kernel> create_gather_elements(const Node& node) {
  return make_kernel([axis_attribute = node.attr("axis", int64_t{0})](Tensors inputs) -> Plan {
    const Shape data = inputs[0].shape, to = inputs[1].shape;
    const int axis = axis_of(axis_attribute, data.rank());
    if (axis < 0) return bad_axis(axis_attribute, data.rank());
    if (!covers(data, to, axis))
      return fail("indices of shape " + to_string(to) + " do not fit data of shape " + to_string(data));
    return make_plan({to},
                     [=, size = bytes_of(inputs[0].dtype, 1)](Tensors in, Tensors out) -> std::optional<std::string> {
                       const int64_t n = to.elements(), extent = data[axis];
                       if (n == 0) return std::nullopt;
                       if (!all_in_range(in[1], n, extent)) {
                         const Indices index(in[1]);
                         int64_t bad = 0;
                         while (bad < n - 1 && index.in_range(bad, extent)) ++bad;
                         return index.out_of_range(bad, extent);
                       }
                       dispatch_size(size, [&](auto tag) {
                         using T = typename decltype(tag)::type;
                         gather_rows<T>(data, to, axis, in[0].as<T>(), in[1], out[0].as<T>());
                       });
                       return std::nullopt;
                     });
  });
}

// ---- GatherND ------------------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> create_gather_nd(const Node& node) {
  return make_kernel([batch_attribute = node.attr("batch_dims", int64_t{0})](Tensors inputs) -> Plan {
    const Shape data = inputs[0].shape, indices = inputs[1].shape;
    if (indices.rank() == 0 || data.rank() == 0 || batch_attribute < 0 ||
        batch_attribute >= std::min(data.rank(), indices.rank()))
      return fail("batch_dims is " + std::to_string(batch_attribute) + " for data of shape " + to_string(data) +
                  " and indices of shape " + to_string(indices) + "; it must be 0 or more, and less than both ranks");
    const int batch_dims = static_cast<int>(batch_attribute);
    const int64_t tuple = indices[indices.rank() - 1];
    if (tuple < 1 || tuple > data.rank() - batch_dims)
      return fail("indices of shape " + to_string(indices) + " hold tuples of " + std::to_string(tuple) +
                  " elements, but data of shape " + to_string(data) + " needs 1 to " +
                  std::to_string(data.rank() - batch_dims));
    const int depth = batch_dims + static_cast<int>(tuple);
    if (indices.rank() - 1 + data.rank() - depth > BP_MAX_RANK)
      return fail("the rank of the result, " + std::to_string(indices.rank() - 1 + data.rank() - depth) +
                  ", exceeds the maximum of 32");
    Shape to(indices.span().first(static_cast<size_t>(indices.rank() - 1)));
    for (int i = depth; i < data.rank(); ++i) to.push_back(data[i]);
    for (int i = 0; i < batch_dims; ++i)
      if (data[i] != indices[i])
        return fail("the batch dimensions of data " + to_string(data) + " and of indices " + to_string(indices) +
                    " differ");
    const int64_t batches = data.elements(0, batch_dims);
    const int64_t rows = indices.elements(batch_dims, indices.rank() - 1),
                  data_batch = data.elements(batch_dims, data.rank());
    const int64_t size = bytes_of(inputs[0].dtype, 1), block = data.elements(depth, data.rank());
    return make_plan({to}, [=](Tensors in, Tensors out) -> std::optional<std::string> {
      const TupleIndices index(in[1], data, batch_dims);
      Pace pace;
      for (int64_t i = 0; i < batches * rows; ++i) {
        pace.spend(1 + block);
        const int64_t at = index.offset(i);
        if (at < 0) return index.out_of_range(i);
        std::memcpy(out[0].as<char>() + i * block * size, in[0].as<char>() + (i / rows * data_batch + at) * size,
                    static_cast<size_t>(block * size));
      }
      return std::nullopt;
    });
  });
}

// ---- ReverseSequence -----------------------------------------------------------------------------------------------

Verdict supports_reverse(const Node& node) {
  const int64_t batch = node.attr("batch_axis", int64_t{1}), time = node.attr("time_axis", int64_t{0});
  if (batch + time != 1 || batch * time != 0)
    return no(BP_REASON_ATTRIBUTE, "batch_axis is " + std::to_string(batch) + " and time_axis is " +
                                       std::to_string(time) + "; they must be 0 and 1, in either order");
  return accepts(node, 2, {kByteTypes, just(BP_DTYPE_INT64)});
}

std::unique_ptr<Kernel> create_reverse(const Node& node) {
  return make_kernel([batch_axis = static_cast<int>(node.attr("batch_axis", int64_t{1}))](Tensors inputs) -> Plan {
    const Shape shape = inputs[0].shape;
    if (shape.rank() < 2 || !(inputs[1].shape == Shape{shape[batch_axis]}))
      return fail("sequence_lens of shape " + to_string(inputs[1].shape) + " does not fit an input of shape " +
                  to_string(shape));
    const int64_t block = shape.elements(2, shape.rank()) * bytes_of(inputs[0].dtype, 1);
    return make_plan({shape}, [=](Tensors in, Tensors out) -> std::optional<std::string> {
      const int64_t* lengths = in[1].as<int64_t>();
      const int64_t times = shape[1 - batch_axis];
      Pace pace;
      for (int64_t i = 0; i < shape[0]; ++i)
        for (int64_t j = 0; j < shape[1]; ++j) {
          pace.spend(block);
          const int64_t time = batch_axis == 1 ? i : j, length = lengths[batch_axis == 1 ? j : i];
          if (length < 0 || length > times)
            return "sequence length " + std::to_string(length) + " is not in [0, " + std::to_string(times) + "]";
          const int64_t source = time < length ? length - 1 - time : time;
          const int64_t row = batch_axis == 1 ? source * shape[1] + j : i * shape[1] + source;
          std::memcpy(out[0].as<char>() + (i * shape[1] + j) * block, in[0].as<char>() + row * block,
                      static_cast<size_t>(block));
        }
      return std::nullopt;
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> gather_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Gather", 1, supports_gather, create_gather}.with(kMovesTexts),
      Row{"", "GatherElements", 11, supports_gather, create_gather_elements}.with(kMovesTexts),
      Row{"", "GatherND", 11, supports_gather, create_gather_nd}.with(kMovesTexts),
      Row{"", "ReverseSequence", 10, supports_reverse, create_reverse}.with(kMovesTexts),
  };
  return kRows;
}

}  // namespace backplane::cpu
