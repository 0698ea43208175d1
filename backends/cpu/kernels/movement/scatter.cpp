// SPDX-License-Identifier: Apache-2.0
// ScatterElements, ScatterND, TensorScatter: copy the data and write updates at indices. Updates are applied in order,
// so that the result is deterministic if indices are equal.
#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/index.h"
#include "kernels/common/support.h"
#include "kernels/movement/packed.h"

namespace backplane::cpu {
namespace {

enum class Reduction { kNone, kAdd, kMul, kMin, kMax };

Reduction reduction_of(const Node& node) {
  const std::string name = node.attr("reduction", "none");
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "min") return Reduction::kMin;
  if (name == "max") return Reduction::kMax;
  return Reduction::kNone;
}

Verdict supports_scatter(const Node& node) {
  if (Verdict verdict = attribute_in(node, "reduction", "none", {"none", "add", "mul", "min", "max"}); !verdict)
    return verdict;
  const bp_dtype_set_t types = reduction_of(node) == Reduction::kNone ? kByteTypes : set_of(NumbersAndBool{});
  if (Verdict verdict = accepts(node, 3, {types, kIndexTypes, types}); !verdict) return verdict;
  return same_type(node, 0, 2);
}

template <class T>
void reduce(T& target, const T& update, Reduction reduction) {
  using C = compute_t<T>;
  const C a = static_cast<C>(target), b = static_cast<C>(update);
  const auto arithmetic = [&](auto f) {
    if constexpr (std::is_same_v<C, bool>)
      return static_cast<T>(f(int{a}, int{b}) != 0);
    else if constexpr (std::is_integral_v<C>)
      return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    else
      return static_cast<T>(f(a, b));
  };
  switch (reduction) {
    case Reduction::kNone:
      target = update;
      break;
    case Reduction::kAdd:
      target = arithmetic([](auto x, auto y) { return x + y; });
      break;
    case Reduction::kMul:
      target = arithmetic([](auto x, auto y) { return x * y; });
      break;
    case Reduction::kMin:
      target = static_cast<T>(a != a || a < b ? a : b);
      break;
    case Reduction::kMax:
      target = static_cast<T>(a != a || a > b ? a : b);
      break;
  }
}

// Calls f(target, updates, write) with typed pointers. write(target element, update element) applies one update.
template <class F>
void with_elements(bp_dtype_t dtype, Reduction reduction, const Tensor& target, const Tensor& updates, const F& f) {
  if (reduction == Reduction::kNone)
    return dispatch_size(bytes_of(dtype, 1), [&](auto tag) {
      using T = typename decltype(tag)::type;
      f(target.as<T>(), updates.as<T>(), [](T& to, const T& from) { to = from; });
    });
  dispatch<NumbersAndBool>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    f(target.as<T>(), updates.as<T>(), [&](T& to, const T& from) { reduce(to, from, reduction); });
  });
}

void copy_data(const Tensor& from, const Tensor& to) {
  if (from.data != to.data && from.data != nullptr)
    std::memcpy(to.data, from.data, static_cast<size_t>(bytes_of(from.dtype, from.shape.elements())));
}

std::unique_ptr<Kernel> create_scatter_elements(const Node& node) {
  const Reduction reduction = reduction_of(node);
  return make_kernel([axis_attribute = node.attr("axis", int64_t{0}), reduction](Tensors inputs) -> Plan {
    const Shape data = inputs[0].shape, part = inputs[1].shape;
    const int axis = axis_of(axis_attribute, data.rank());
    if (axis < 0) return bad_axis(axis_attribute, data.rank());
    if (!covers(data, part, axis) || !(inputs[2].shape == part))
      return fail("indices of shape " + to_string(part) + " and updates of shape " + to_string(inputs[2].shape) +
                  " do not fit data of shape " + to_string(data));
    return make_plan({data},
                     [=](Tensors in, Tensors out) -> std::optional<std::string> {
                       const Indices index(in[1]);
                       for (int64_t i = 0; i < part.elements(); ++i)
                         if (!index.in_range(i, data[axis])) return index.out_of_range(i, data[axis]);
                       copy_data(in[0], out[0]);
                       with_elements(in[0].dtype, reduction, out[0], in[2],
                                     [&](auto* target, const auto* updates, const auto& write) {
                                       for_elements(data, part, axis, [&](int64_t i, int64_t base, int64_t stride) {
                                         write(target[base + index(i, data[axis]) * stride], updates[i]);
                                       });
                                     });
                       return std::nullopt;
                     },
                     {.inplace = 0});
  });
}

std::unique_ptr<Kernel> create_scatter_nd(const Node& node) {
  return make_kernel([reduction = reduction_of(node)](Tensors inputs) -> Plan {
    const Shape data = inputs[0].shape, indices = inputs[1].shape;
    const int64_t tuple = indices.rank() == 0 ? 0 : indices[indices.rank() - 1];
    if (tuple < 1 || tuple > data.rank())
      return fail("indices of shape " + to_string(indices) + " hold tuples of " + std::to_string(tuple) +
                  " elements, but data of shape " + to_string(data) + " needs 1 to " + std::to_string(data.rank()));
    const int64_t rows = indices.elements(0, indices.rank() - 1);
    const int64_t block = data.elements(static_cast<int>(tuple), data.rank());
    if (inputs[2].shape.elements() != rows * block)
      return fail("updates of shape " + to_string(inputs[2].shape) + " do not fit indices of shape " +
                  to_string(indices) + " and data of shape " + to_string(data));
    return make_plan({data},
                     [=](Tensors in, Tensors out) -> std::optional<std::string> {
                       const TupleIndices index(in[1], data, 0);
                       Pace pace;
                       for (int64_t row = 0; row < rows; ++row)
                         if (index.offset(row) < 0) return index.out_of_range(row);
                       copy_data(in[0], out[0]);
                       with_elements(in[0].dtype, reduction, out[0], in[2],
                                     [&](auto* target, const auto* updates, const auto& write) {
                                       for (int64_t row = 0; row < rows; ++row) {
                                         pace.spend(1 + block);
                                         const int64_t at = std::max<int64_t>(index.offset(row), 0);
                                         for (int64_t i = 0; i < block; ++i)
                                           write(target[at + i], updates[row * block + i]);
                                       }
                                     });
                       return std::nullopt;
                     },
                     {.inplace = 0});
  });
}

// ---- TensorScatter: writes new time steps to a key-value cache [batch, …, time, …] ---------------------------------

Verdict supports_tensor_scatter(const Node& node) {
  if (Verdict verdict = attribute_in(node, "mode", "linear", {"linear", "circular"}); !verdict) return verdict;
  constexpr bp_dtype_set_t kTypes = kByteTypes | kPackedTypes;
  if (Verdict verdict = accepts(node, 2, {kTypes, kTypes, just(BP_DTYPE_INT64)}); !verdict) return verdict;
  return same_type(node, 0, 1);
}

std::unique_ptr<Kernel> create_tensor_scatter(const Node& node) {
  return make_kernel([axis_attribute = node.attr("axis", int64_t{-2}),
                      circular = node.attr("mode", "linear") == "circular"](Tensors inputs) -> Plan {
    const Shape cache = inputs[0].shape, update = inputs[1].shape;
    const int axis = axis_of(axis_attribute, cache.rank());
    if (axis < 0) return bad_axis(axis_attribute, cache.rank());
    if (axis == 0)
      return fail("axis " + std::to_string(axis_attribute) + " is the batch; it must be another dimension");
    Shape expected = cache;
    if (update.rank() == cache.rank()) expected[axis] = update[axis];
    if (!(expected == update) || update[axis] > cache[axis])
      return fail("update of shape " + to_string(update) + " does not fit a cache of shape " + to_string(cache));
    const Tensor starts = at(inputs, 2);
    if (starts.present() && !(starts.shape == Shape{cache[0]}))
      return fail("write_indices of shape " + to_string(starts.shape) + " does not fit a batch of " +
                  std::to_string(cache[0]));
    const int64_t block = cache.elements(axis + 1, cache.rank()) * bytes_of(inputs[0].dtype, 1);
    return make_plan(
        {cache},
        [=](Tensors in, Tensors out) -> std::optional<std::string> {
          const int64_t *first = at(in, 2).as<int64_t>(), times = cache[axis], middle = cache.elements(1, axis);
          for (int64_t batch = 0; batch < cache[0] && first != nullptr; ++batch)
            if (first[batch] < 0 || first[batch] >= times || (!circular && first[batch] + update[axis] > times))
              return "write_indices contains " + std::to_string(first[batch]) + ", which is out of range for " +
                     std::to_string(update[axis]) + " updates of a cache with extent " + std::to_string(times);
          copy_data(in[0], out[0]);
          Pace pace;
          for (int64_t row = 0; row < cache[0] * middle && update[axis] > 0; ++row)
            for (int64_t t = 0; t < update[axis]; ++t) {
              pace.spend(block);
              const int64_t time = ((first == nullptr ? 0 : first[row / middle]) + t) % times;
              std::memcpy(out[0].as<char>() + (row * times + time) * block,
                          in[1].as<char>() + (row * update[axis] + t) * block, static_cast<size_t>(block));
            }
          return std::nullopt;
        },
        {.inplace = 0});
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> scatter_rows() {
  static constexpr Row kRows[] = {
      {"", "Scatter", 9, supports_scatter, create_scatter_elements},
      Row{"", "ScatterElements", 11, supports_scatter, create_scatter_elements}
          .updating(kUpdatesInput0)
          .with(kMovesTexts),
      Row{"", "ScatterND", 11, supports_scatter, create_scatter_nd}.updating(kUpdatesInput0).with(kMovesTexts),
      Row{"", "TensorScatter", 24, supports_tensor_scatter, create_unpacked<create_tensor_scatter>}
          .updating(kUpdatesInput0)
          .with(kMovesTexts),
  };
  return kRows;
}

}  // namespace backplane::cpu
