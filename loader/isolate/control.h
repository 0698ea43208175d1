// SPDX-License-Identifier: Apache-2.0
// The packets on the socket that a backend's process starts with. The loader sends new channels and cancellations of
// calls; the process sends lines of its log.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::isolate {

// Descriptor numbers in the backend's process.
inline constexpr int kControlSocket = 3;
inline constexpr int kLibraryFile = 4;

struct ControlPacket {
  enum Kind : uint32_t { kNewChannel = 1, kCancel = 2 };
  uint32_t kind;
  uint32_t channel;  // the channel's number
  uint64_t call;     // kCancel
};

// The maximum size of a log line's packet: the level, then the text.
inline constexpr size_t kMostLogBytes = 8192;

}  // namespace backplane::isolate
