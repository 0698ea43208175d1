// SPDX-License-Identifier: Apache-2.0
// Limits the memory and time that planning spends on tables (indices, taps, roots of unity), whose sizes follow from a
// model's extents and not from its size. A table that exceeds the limit is not built while planning: a run builds it
// (Lazy) or computes its entries as needed, under its deadline and memory limit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "runtime/kernel.h"

namespace backplane::cpu {

// The bytes that the tables of one schedule may take. Computing them takes less than a second.
inline constexpr int64_t kTableBytes = int64_t{64} << 20;

// The part of kTableBytes that a schedule has not used yet.
class TableAllowance {
 public:
  // Takes the bytes from what is left, and returns true, if that many are left.
  bool take(int64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  int64_t left_ = kTableBytes;
};

// Whether a plan may build tables of `bytes` bytes. If so, takes them from the context's allowance; without one, each
// call may take up to kTableBytes.
bool may_build_tables(const PlanContext& context, int64_t bytes);

// An object with tables, made by the constructor if `at_once`, otherwise by the first run that needs it. Copies of a
// Lazy share the object.
template <class T>
class Lazy {
 public:
  // `make` returns std::shared_ptr<const T>.
  template <class Make>
  Lazy(bool at_once, Make make) : shared_(std::make_shared<Shared>()) {
    shared_->make = std::move(make);
    if (at_once) shared_->made = shared_->make();
  }
  // Concurrent first runs each make an object, since waiting for another run could exceed the deadline. The first
  // object that is finished is kept.
  std::shared_ptr<const T> get() const {
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->made) return shared_->made;
    }
    std::shared_ptr<const T> made = shared_->make();
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->made) shared_->made = std::move(made);
    return shared_->made;
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::function<std::shared_ptr<const T>()> make;
    std::shared_ptr<const T> made;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace backplane::cpu
