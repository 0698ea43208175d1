// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core.h"

namespace backplane::python {

class PyEnvironment {
 public:
  explicit PyEnvironment(Environment env) : env_(std::move(env)) {}
  const Environment& operator*() const { return *env_; }
  const Environment* operator->() const { return &*env_; }
  bp_env_t* get() const { return env_->get(); }

 private:
  Unlocked<Environment> env_;
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
