// SPDX-License-Identifier: Apache-2.0
// Copies of structs that cross the ABI, for plugins that wrap another plugin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace backplane::liar {

// Copies a struct that may be shorter or longer than this build's version of it.
template <class T>
T taken(const T& given) {
  T own{};
  const uint32_t size = std::min<uint32_t>(given.size, sizeof own);
  std::memcpy(static_cast<void*>(&own), &given, size);
  own.size = size;
  return own;
}

}  // namespace backplane::liar
