// SPDX-License-Identifier: Apache-2.0
// NonZero, Compress and Unique. The extents of their results depend on values, so they select elements while planning.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/movement/order.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

// Returns the indices below n for which `chosen` is true. Counts them first, so that a tensor with few of them needs
// little memory.
template <class Predicate>
std::vector<int64_t> indices_where(int64_t n, const Predicate& chosen) {
  Pace pace;
  const auto for_each_chosen = [&](auto&& action) {
    for (int64_t i = 0; i < n; ++i) {
      if (i % kCheapGrain == 0) pace.spend(kCheapGrain);
      if (chosen(i)) action(i);
    }
  };
  int64_t count = 0;
  for_each_chosen([&](int64_t) { ++count; });
  require_memory(count, sizeof(int64_t));
  std::vector<int64_t> indices;
  indices.reserve(static_cast<size_t>(count));
  for_each_chosen([&](int64_t i) { indices.push_back(i); });
  return indices;
}

// ---- NonZero -------------------------------------------------------------------------------------------------------

Verdict supports_non_zero(const Node& node) {
  return accepts(node, 1, {set_of(NumbersAndBool{})});
}

std::unique_ptr<Kernel> create_non_zero(const Node&) {
  return make_kernel([](Tensors inputs) -> Plan {
    if (!known(inputs[0])) return deferred();
    const Shape shape = inputs[0].shape;
    std::vector<int64_t> found;
    dispatch<NumbersAndBool>(inputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = inputs[0].template as<T>();
      found = indices_where(shape.elements(), [x](int64_t i) { return static_cast<compute_t<T>>(x[i]) != 0; });
    });
    const auto count = static_cast<int64_t>(found.size());
    return make_plan({{shape.rank(), count}}, [shape, found = std::move(found), count](Tensors, Tensors out) {
      const Shape strides = strides_of(shape);
      for (int d = 0; d < shape.rank(); ++d)
        for (int64_t i = 0; i < count; ++i)
          out[0].as<int64_t>()[d * count + i] = found[static_cast<size_t>(i)] / strides[d] % shape[d];
    });
  });
}

// ---- Compress ------------------------------------------------------------------------------------------------------

Verdict supports_compress(const Node& node) {
  return accepts(node, 2, {kByteTypes, just(BP_DTYPE_BOOL)});
}

std::unique_ptr<Kernel> create_compress(const Node& node) {
  const bool flat = node.find("axis") == nullptr;
  return make_kernel([flat, axis_attribute = node.attr("axis", int64_t{0})](Tensors inputs) -> Plan {
    if (!known(inputs[1])) return deferred();
    const Shape shape = flat ? Shape{inputs[0].shape.elements()} : inputs[0].shape;
    const int axis = axis_of(axis_attribute, shape.rank());
    if (axis < 0) return bad_axis(axis_attribute, shape.rank());
    const Bool* const condition = inputs[1].as<Bool>();
    std::vector<int64_t> chosen = indices_where(std::min(inputs[1].shape.elements(), shape[axis]),
                                                [&](int64_t i) -> bool { return condition[i]; });
    Shape to = shape;
    to[axis] = static_cast<int64_t>(chosen.size());
    const int64_t outer = shape.elements(0, axis), extent = shape[axis];
    const int64_t block = shape.elements(axis + 1, shape.rank()) * bytes_of(inputs[0].dtype, 1);
    return make_plan({to}, [=, chosen = std::move(chosen)](Tensors in, Tensors out) {
      char* target = out[0].as<char>();
      Pace pace;
      for (int64_t row = 0; row < outer; ++row)
        for (int64_t i : chosen) {
          pace.spend(block);
          std::memcpy(target, in[0].as<char>() + (row * extent + i) * block, static_cast<size_t>(block));
          target += block;
        }
    });
  });
}

// ---- Unique: compares slices along an axis, or single elements -----------------------------------------------------

Verdict supports_unique(const Node& node) {
  return accepts(node, 1, {set_of(NumbersAndBool{})});
}

// Groups of equal slices: the index of each group's first slice, the group of each slice, the size of each group.
struct Groups {
  std::vector<int64_t> first, inverse, counts;
};

// Groups equal slices; `compare(a, b)` returns a number below, equal to or above 0. If not `sorted`, groups are ordered
// by their first slices.
template <class Compare>
Groups group(int64_t n, bool sorted, const Compare& compare) {
  require_memory(n, 4 * int64_t{sizeof(int64_t)});
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  Groups groups;
  groups.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      groups.first.push_back(order[i]);
      groups.counts.push_back(0);
    }
    groups.inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(groups.first.size()) - 1;
    ++groups.counts.back();
  }
  if (sorted) return groups;
  std::vector<int64_t> by_first(groups.first.size()), position(by_first);
  std::iota(by_first.begin(), by_first.end(), 0);
  std::ranges::sort(by_first, {}, [&](int64_t g) { return groups.first[static_cast<size_t>(g)]; });
  Groups result;
  for (int64_t g : by_first) {
    position[static_cast<size_t>(g)] = static_cast<int64_t>(result.first.size());
    result.first.push_back(groups.first[static_cast<size_t>(g)]);
    result.counts.push_back(groups.counts[static_cast<size_t>(g)]);
  }
  for (int64_t g : groups.inverse) result.inverse.push_back(position[static_cast<size_t>(g)]);
  return result;
}

std::unique_ptr<Kernel> create_unique(const Node& node) {
  const bool flat = node.find("axis") == nullptr;
  return make_kernel([flat, axis_attribute = node.attr("axis", int64_t{0}),
                      sorted = node.attr("sorted", int64_t{1}) != 0](Tensors inputs) -> Plan {
    if (!known(inputs[0])) return deferred();
    const Shape shape = flat ? Shape{inputs[0].shape.elements()} : inputs[0].shape;
    const int axis = axis_of(axis_attribute, shape.rank());
    if (axis < 0) return bad_axis(axis_attribute, shape.rank());
    const int64_t outer = shape.elements(0, axis), extent = shape[axis], inner = shape.elements(axis + 1, shape.rank());
    Pace pace;
    Groups groups = dispatch<NumbersAndBool>(inputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = inputs[0].template as<T>();
      return group(extent, sorted, [&](int64_t a, int64_t b) {
        for (int64_t o = 0; o < outer && inner > 0; ++o)
          for (int64_t i = 0; i < inner; ++i) {
            pace.spend(1);
            const auto p = static_cast<compute_t<T>>(x[(o * extent + a) * inner + i]);
            const auto q = static_cast<compute_t<T>>(x[(o * extent + b) * inner + i]);
            if (ordered_before(p, q)) return -1;
            if (ordered_before(q, p)) return 1;
          }
        return 0;
      });
    });
    Shape to = shape;
    to[axis] = static_cast<int64_t>(groups.first.size());
    const Shape list{to[axis]};
    return make_plan(
        {to, list, {extent}, list},
        [=, groups = std::move(groups), block = inner * bytes_of(inputs[0].dtype, 1)](Tensors in, Tensors out) {
          char* target = out[0].as<char>();
          for (int64_t o = 0; o < outer && target != nullptr; ++o)
            for (int64_t i : groups.first) {
              std::memcpy(target, in[0].as<char>() + (o * extent + i) * block, static_cast<size_t>(block));
              target += block;
            }
          const std::vector<int64_t>* lists[] = {&groups.first, &groups.inverse, &groups.counts};
          for (size_t k = 0; k < 3; ++k)
            if (const Tensor list_out = at(out, k + 1); list_out.data != nullptr)
              std::ranges::copy(*lists[k], list_out.as<int64_t>());
        });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> select_rows() {
  static constexpr Row kRows[] = {
      Row{"", "NonZero", 9, supports_non_zero, create_non_zero}.with(kRanksTexts),
      Row{"", "Compress", 9, supports_compress, create_compress}.with(kMovesTexts),
      Row{"", "Unique", 11, supports_unique, create_unique}.with(kOmitsOutput0 | kRanksTexts),
  };
  return kRows;
}

}  // namespace backplane::cpu
