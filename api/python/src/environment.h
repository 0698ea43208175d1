// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core.h"

namespace backplane::python {

class PyEnvironment {
 public:
  explicit PyEnvironment(Environment env, std::shared_ptr<SharedObject> log = nullptr)
      : env_(std::move(env)), log_(std::move(log)) {}
  const Environment& operator*() const { return *env_; }
  const Environment* operator->() const { return &*env_; }
  bp_env_t* get() const { return env_->get(); }
  // For the garbage collector: the log function may refer to this object. Sessions of the environment that outlive it
  // then log nothing more.
  int traverse(visitproc visit, void* arg) const {
    if (log_) Py_VISIT(log_->get().ptr());
    return 0;
  }
  void clear() {
    if (log_) log_->clear();
  }

 private:
  Unlocked<Environment> env_;
  std::shared_ptr<SharedObject> log_;
};

// A device, with the environment, which owns the texts of bp_device_info_t.
struct PyDevice {
  Unlocked<Environment> env;
  Device device;
};
struct PyCandidate {
  Unlocked<Environment> env;
  bp_candidate_t candidate;
};

}  // namespace backplane::python
