// SPDX-License-Identifier: Apache-2.0
// is_one_of() is true in about one of n cases, always the same ones, because the bytes of the first input decide.
#pragma once

#include "testing/wrapper.h"

namespace backplane::liar {

inline bool is_one_of(const Run& run, uint64_t n) {
  if (run.inputs.empty()) return false;
  const Bound& input = run.inputs[0];
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (uint64_t i = 0; i < input.tensor.buffer.bytes; ++i)
    hash = (hash ^ static_cast<unsigned char>(input.bytes()[i])) * 0x100000001b3u;
  return (hash >> 16) % n == 0;
}

// Inverts the bytes of the first output. The lies marks_every_… mark in this way the cases in which crashes_every_50th
// crashes and hangs_every_200th hangs.
inline void mark(Run& run) {
  char* bytes = run.outputs[0].bytes();
  for (uint64_t i = 0; i < run.outputs[0].tensor.buffer.bytes; ++i) bytes[i] = static_cast<char>(~bytes[i]);
}

}  // namespace backplane::liar
