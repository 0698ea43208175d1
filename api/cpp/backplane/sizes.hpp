// SPDX-License-Identifier: Apache-2.0
// The sizes of ABI 1.0 for templates: kSize10<bp_run_t> is BP_SIZE_1_0(bp_run_t).
#pragma once

#include <cstdint>

#include "backplane/loader.h"
#include "backplane/plugin.h"
#include "backplane/sizes.h"

namespace backplane {

template <class T>
struct AbiSize;  // defined only for the ABI's structs
#define BACKPLANE_ABI_SIZE(type, bytes)      \
  template <>                                \
  struct AbiSize<type> {                     \
    static constexpr uint32_t k10 = (bytes); \
  };
BP_EACH_SIZE_1_0(BACKPLANE_ABI_SIZE)
#undef BACKPLANE_ABI_SIZE

// The size of struct T in ABI 1.0, in bytes. A smaller struct from the other side of the ABI is refused. A larger one
// has newer fields, which this build may not know.
template <class T>
inline constexpr uint32_t kSize10 = AbiSize<T>::k10;

}  // namespace backplane
