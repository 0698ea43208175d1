// SPDX-License-Identifier: Apache-2.0
// The opaque handles of loader.h that several files of this folder use. Each keeps alive the objects that it uses.
// Members of bp_session_t are defined in session.cpp, those of bp_model_t in model.cpp.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "c_api/fence.h"
#include "discover/environment.h"
#include "host/semaphore.h"
#include "ir/graph.h"
#include "run/exec.h"
#include "run/lane.h"
#include "session/session.h"
#include "view/view.h"

struct bp_env_t {
  std::shared_ptr<backplane::Environment> environment;
  uint32_t generation = backplane::c_api::generation();
  backplane::SpareLanes lanes = {};  // for copies and fills that the framework does not order by a bp_run_t
};

struct bp_model_t {
  std::shared_ptr<const backplane::model::Model> model;
  uint32_t generation = backplane::c_api::generation();

  // The whole graph in canonical form. Created by the first call of this function, because sessions do not need the
  // view.
  const backplane::model::View& view() const;

 private:
  mutable std::once_flag viewed_;
  mutable std::shared_ptr<const backplane::model::View> view_;
};

struct bp_session_t {
  std::shared_ptr<const backplane::SessionLine> line;
  uint32_t generation = backplane::c_api::generation();

  // The whole graph in canonical form, created by the first call.
  const backplane::model::View& view() const;
  // Copies the text into this handle and returns the copy, which stays valid when a newer Session replaces the
  // one that the text came from.
  std::string_view keep(std::string_view text) const;
  // Keeps `earlier` for the life of this handle, for frameworks that hold plugin handles of its programs.
  void keep(std::shared_ptr<const backplane::Session> earlier) const;

 private:
  mutable std::once_flag viewed_;
  mutable std::shared_ptr<const backplane::model::View> view_;
  mutable std::mutex mutex_;
  mutable std::set<std::string, std::less<>> texts_;
  mutable std::set<std::shared_ptr<const backplane::Session>> sessions_;
};

struct bp_exec_t {
  std::unique_ptr<backplane::Exec> exec;
  uint32_t generation = backplane::c_api::generation();
};

namespace backplane::c_api {

// A semaphore that bp_semaphore_create made. The framework's handle points to the base class; handle_of() returns the
// derived object, and must not be called for a bp_semaphore_t that was made in another way.
struct HostSemaphore : bp_semaphore_t {
  using bp_semaphore_t::bp_semaphore_t;
  uint32_t generation = c_api::generation();
};
inline HostSemaphore* handle_of(bp_semaphore_t* semaphore) {
  return static_cast<HostSemaphore*>(semaphore);
}

// Creates a handle for the model.
bp_model_t* wrap(std::shared_ptr<const model::Model> model);
// BP_UNSUPPORTED if the backend is isolated: its handles belong to another process. The device must have been opened.
Status has_plugin_handles(const Device& device);
// Host memory for a copy. Never freed if one of the copy's devices was abandoned, because the device may still be
// copying.
class CopyMemory {
 public:
  explicit CopyMemory(uint64_t bytes) : bytes_(std::make_shared<std::vector<char>>(bytes)) {}
  CopyMemory(CopyMemory&&) = default;
  ~CopyMemory();
  // Call before the device starts to copy from or to this memory.
  void used_by(const Device& device) { devices_.push_back(&device); }
  bp_buffer_t buffer() const;

 private:
  std::shared_ptr<std::vector<char>> bytes_;
  std::vector<const Device*> devices_;
};

// Copies the first `bytes` bytes of a buffer from the device's memory to host memory and waits. Opens the device if
// needed.
Result<CopyMemory> copy_to_host(Device& device, SpareLanes& lanes, const bp_buffer_t& from, uint64_t bytes);

}  // namespace backplane::c_api
