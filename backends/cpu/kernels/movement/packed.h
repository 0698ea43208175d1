// SPDX-License-Identifier: Apache-2.0
// Adapts operators that move elements to elements of less than a byte: unpacks them to bytes, moves the bytes, and
// packs them again.
#pragma once

#include "runtime/row.h"

namespace backplane::cpu {

// The returned kernel passes packed tensors to `inner` as UINT8 tensors with one element per byte. While planning,
// these have no data.
std::unique_ptr<Kernel> move_unpacked(std::unique_ptr<Kernel> inner);

// Whether input 0 has a packed type.
bool has_packed(const Node& node);

// Wraps a row's `create` for an operator that also accepts packed types.
template <auto kCreate>
std::unique_ptr<Kernel> create_unpacked(const Node& node) {
  return has_packed(node) ? move_unpacked(kCreate(node)) : kCreate(node);
}

}  // namespace backplane::cpu
