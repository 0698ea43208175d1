// SPDX-License-Identifier: Apache-2.0
// Operators that change nothing but the extents: output 0 is an alias of input 0, and no step runs.
#include <utility>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"

namespace backplane::cpu {
namespace {

constexpr bp_dtype_set_t kAllTypes = kByteTypes | kPackedTypes;

Plan renamed(Shape shape) {
  return make_plan({std::move(shape)}, [](Tensors, Tensors) {}, {.alias = 0});
}

// ---- Reshape -------------------------------------------------------------------------------------------------------

Verdict supports_reshape(const Node& node) {
  return accepts(node, 2, {kAllTypes, just(BP_DTYPE_INT64)});
}

std::unique_ptr<Kernel> create_reshape(const Node& node) {
  return make_kernel([allow_zero = node.attr("allowzero", int64_t{0}) != 0](Tensors inputs) -> Plan {
    if (!known(inputs[1])) return deferred();
    const Shape& from = inputs[0].shape;
    const std::vector<int64_t> wanted = integers(inputs[1]);
    if (wanted.size() > BP_MAX_RANK)
      return fail("the rank of the result, " + std::to_string(wanted.size()) + ", exceeds the maximum of 32");
    const auto impossible = [&] {
      return fail("data of shape " + to_string(from) + " cannot be reshaped to " + to_string(Shape(wanted)));
    };
    Shape to;
    int unknown = -1;
    int64_t elements = 1;  // product of the known extents
    for (size_t i = 0; i < wanted.size(); ++i) {
      int64_t extent = wanted[i];
      if (extent == 0 && !allow_zero) {
        if (static_cast<int>(i) >= from.rank()) return impossible();
        extent = from[static_cast<int>(i)];
      }
      if (extent == -1 && unknown < 0)
        unknown = static_cast<int>(i);
      else if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
        return impossible();
      to.push_back(extent);
    }
    const int64_t total = from.elements();
    if (unknown >= 0) {
      if (elements == 0 || total % elements != 0) return impossible();
      to[unknown] = total / elements;
    } else if (elements != total) {
      return impossible();
    }
    return renamed(to);
  });
}

// ---- Flatten, Squeeze, Unsqueeze -----------------------------------------------------------------------------------

Verdict supports_one(const Node& node) {
  return accepts(node, 1, {kAllTypes});
}

std::unique_ptr<Kernel> create_flatten(const Node& node) {
  return make_kernel([axis = node.attr("axis", int64_t{1})](Tensors inputs) -> Plan {
    const Shape& shape = inputs[0].shape;
    const int64_t split = axis < 0 ? axis + shape.rank() : axis;
    if (split < 0 || split > shape.rank()) return bad_axis(axis, shape.rank());
    const int at = static_cast<int>(split);
    return renamed({shape.elements(0, at), shape.elements(at, shape.rank())});
  });
}

Verdict supports_squeeze(const Node& node) {
  return accepts(node, 1, {kAllTypes, just(BP_DTYPE_INT64)});
}

std::unique_ptr<Kernel> create_squeeze(const Node&) {
  return make_kernel([](Tensors inputs) -> Plan {
    const Shape& from = inputs[0].shape;
    const Tensor axes = at(inputs, 1);
    uint64_t dropped = 0;
    if (axes.present()) {
      if (!known(axes)) return deferred();
      const auto set = axis_set(integers(axes), from.rank());
      if (!set) return fail(axes_error(integers(axes), from.rank()));
      dropped = *set;
    }
    Shape to;
    for (int i = 0; i < from.rank(); ++i) {
      const bool drop = axes.present() ? (dropped >> i & 1) != 0 : from[i] == 1;
      if (drop && from[i] != 1)
        return fail("axis " + std::to_string(i) + " of shape " + to_string(from) +
                    " cannot be removed: its extent is not 1");
      if (!drop) to.push_back(from[i]);
    }
    return renamed(to);
  });
}

Verdict supports_unsqueeze(const Node& node) {
  return accepts(node, 2, {kAllTypes, just(BP_DTYPE_INT64)});
}

std::unique_ptr<Kernel> create_unsqueeze(const Node&) {
  return make_kernel([](Tensors inputs) -> Plan {
    if (!known(inputs[1])) return deferred();
    const std::vector<int64_t> axes = integers(inputs[1]);
    const Shape& from = inputs[0].shape;
    if (axes.size() + static_cast<size_t>(from.rank()) > BP_MAX_RANK)
      return fail("the rank of the result, " + std::to_string(axes.size() + static_cast<size_t>(from.rank())) +
                  ", exceeds the maximum of 32");
    const int rank = from.rank() + static_cast<int>(axes.size());
    const auto added = axis_set(axes, rank);
    if (!added) return fail(axes_error(axes, rank));
    Shape to;
    for (int i = 0, next = 0; i < rank; ++i) to.push_back((*added >> i & 1) != 0 ? 1 : from[next++]);
    return renamed(to);
  });
}

std::unique_ptr<Kernel> create_identity(const Node&) {
  return make_kernel([](Tensors inputs) { return renamed(inputs[0].shape); });
}

}  // namespace

[[gnu::cold]] std::span<const Row> reshape_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Reshape", 5, supports_reshape, create_reshape}.with(kMovesTexts),
      Row{"", "Flatten", 1, supports_one, create_flatten}.with(kMovesTexts),
      Row{"", "Squeeze", 13, supports_squeeze, create_squeeze}.with(kMovesTexts),
      Row{"", "Unsqueeze", 13, supports_unsqueeze, create_unsqueeze}.with(kMovesTexts),
      Row{"", "Identity", 1, supports_one, create_identity}.with(kMovesTexts),
  };
  return kRows;
}

}  // namespace backplane::cpu
