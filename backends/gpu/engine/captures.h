// SPDX-License-Identifier: Apache-2.0
// The captures of one instance: its commands for the bindings that it ran with most recently. A capture costs more than
// a run, so bindings are captured when they are used for the second time.
#pragma once

#include <functional>
#include <list>
#include <vector>

#include "engine/driver.h"

namespace backplane::gpu {

// Not thread-safe.
class Captures {
 public:
  // The addresses that differ between bindings. Everything else that the commands refer to must not change until
  // `clear`.
  using Key = std::vector<uint64_t>;

  // The capture for the bindings `key`, or NULL if they are used for the first time, or were not among the kKept used
  // most recently. On their second use, calls `make` to create the capture; if `make` throws, calls `disable` and
  // rethrows. The result is valid until the next call of a function of this object.
  const DeviceCapture* find(const Key& key, const std::function<Capture()>& make);
  // Call this before anything that the commands refer to changes or is freed.
  void clear() { entries_.clear(); }
  // Destroys the captures; `find` returns NULL from then on and captures nothing.
  void disable() {
    clear();
    disabled_ = true;
  }

 private:
  struct Entry {
    Key key;
    Capture capture;  // NULL until the second use
  };
  // Enough for a text decoder that alternates between two KV caches, each with two sets of inputs and outputs.
  static constexpr size_t kKept = 4;

  std::list<Entry> entries_;  // most recently used first
  bool disabled_ = false;
};

}  // namespace backplane::gpu
