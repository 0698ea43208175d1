// SPDX-License-Identifier: Apache-2.0
// The packets on the control socket, which a backend's process has open from its start. The loader sends new channels
// and cancels calls; the process sends lines of its log.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::isolate {

// The descriptors with which the backend's process starts.
inline constexpr int kControlSocket = 3;
inline constexpr int kLibraryFile = 4;

struct ControlPacket {
  enum Kind : uint32_t { kNewChannel = 1, kCancel = 2 };
  uint32_t kind;
  uint32_t channel;
  uint64_t call;  // for kCancel: number of the call
};

// The most bytes in the packet of a log line, which consists of the level and the text.
inline constexpr size_t kMostLogBytes = 8192;

}  // namespace backplane::isolate
