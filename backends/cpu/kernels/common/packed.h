// SPDX-License-Identifier: Apache-2.0
// Operators that move elements, for elements of less than a byte: they are unpacked into bytes, moved, and packed
// again.
#pragma once

#include "runtime/row.h"

namespace backplane::cpu {

// `inner` receives packed tensors as UINT8 and, while planning, without their values.
std::unique_ptr<Kernel> move_unpacked(std::unique_ptr<Kernel> inner);

bool has_packed(const Node& node);

// Wraps a row's `create` for an operator that also accepts packed types.
template <auto kCreate>
std::unique_ptr<Kernel> create_unpacked(const Node& node) {
  return has_packed(node) ? move_unpacked(kCreate(node)) : kCreate(node);
}

}  // namespace backplane::cpu
