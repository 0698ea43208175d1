// SPDX-License-Identifier: Apache-2.0
// Limits the memory and time that planning spends on tables (indices, taps, roots of unity), whose sizes follow from a
// model's extents and not from its size. A table that exceeds the limit is not built while planning: the run computes
// its entries instead, under its deadline and memory limit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace backplane::cpu {

// The bytes that the tables of one schedule may take. Computing them takes less than a second.
inline constexpr int64_t kTableBytes = int64_t{64} << 20;

// Whether a plan may build tables of `bytes` bytes. If the calling thread has a UseTables, it holds the bytes that are
// left: `bytes` are deducted from them, or refused if they are more. Otherwise, as in a run, up to kTableBytes are
// granted to every call.
bool may_build_tables(int64_t bytes);

// During its lifetime, the tables that the calling thread's plans build have at most kTableBytes in total.
class UseTables {
 public:
  UseTables();
  ~UseTables();
  UseTables(const UseTables&) = delete;
  UseTables& operator=(const UseTables&) = delete;

 private:
  int64_t left_ = kTableBytes;
  int64_t* before_;
};

// An object with tables, made by the constructor or by the first run that needs it. Copies of a Lazy share the object.
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
