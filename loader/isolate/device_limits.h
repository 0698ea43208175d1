// SPDX-License-Identifier: Apache-2.0
// Limits for what a plugin reports about its devices and programs. No plugin needs more; a larger value is assumed to
// be uninitialized. Discovery refuses more, so an isolated backend's process need not send more.
#pragma once

#include <cstdint>

namespace backplane {

inline constexpr uint32_t kMaxDevices = 256;
inline constexpr uint64_t kMaxDeviceText = 4096;       // bytes of each text
inline constexpr uint32_t kMaxDeviceElements = 1000;   // peers and properties
inline constexpr uint32_t kMaxInplacePairs = 100'000;  // of a program

}  // namespace backplane
