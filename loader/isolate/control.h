// SPDX-License-Identifier: Apache-2.0
// The packets of the socket that a backend's process begins with: from the loader a new channel or the cancellation of
// a call; from the process lines of its log.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::isolate {

// Descriptors of the program.
inline constexpr int kControlSocket = 3;
inline constexpr int kLibraryFile = 4;

struct ControlPacket {
  enum Kind : uint32_t { kNewChannel = 1, kCancel = 2 };
  uint32_t kind;
  uint32_t channel;  // its number
  uint64_t call;     // kCancel
};

// A line of the log: its level, then the text.
inline constexpr size_t kMostLogBytes = 8192;

}  // namespace backplane::isolate
