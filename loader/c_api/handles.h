// SPDX-License-Identifier: Apache-2.0
// Implements the opaque handles of loader.h. Each handle keeps alive the objects that it uses.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "c_api/fence.h"
#include "discover/environment.h"
#include "ir/graph.h"
#include "run/exec.h"
#include "run/lane.h"
#include "session/session.h"
#include "view/view.h"

struct bp_env_t {
  std::shared_ptr<backplane::Environment> environment;
  uint32_t generation = backplane::c_api::generation();
  backplane::SpareLanes lanes = {};  // for copies and fills without a run
};

struct bp_model_t {
  std::shared_ptr<const backplane::model::Model> model;
  uint32_t generation = backplane::c_api::generation();

  // The whole graph in canonical form. Created on demand, because sessions do not need it.
  const backplane::model::View& view() const;

 private:
  mutable std::once_flag viewed_;
  mutable std::shared_ptr<const backplane::model::View> view_;
};

struct bp_session_t {
  std::shared_ptr<const backplane::SessionLine> line;
  uint32_t generation = backplane::c_api::generation();

  // The whole graph in canonical form, created on demand.
  const backplane::model::View& view() const;
  // Copies the text into this handle and returns the copy, which outlives the session that it came from.
  std::string_view keep(std::string_view text) const;
  // Keeps the programs of `earlier` for the life of this handle.
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

// Creates a handle for the model.
bp_model_t* wrap(std::shared_ptr<const model::Model> model);
// BP_UNSUPPORTED if the backend is isolated: its handles belong to another process. The device must have been opened.
Status has_plugin_handles(const Device& device);
// Host memory for a copy. Kept for good if one of the copy's devices was given up, as the copy may still be under way.
class CopyMemory {
 public:
  explicit CopyMemory(uint64_t bytes) : bytes_(std::make_shared<std::vector<char>>(bytes)) {}
  CopyMemory(CopyMemory&&) = default;
  ~CopyMemory();
  // A copy between this memory and the device's is going to be made.
  void used_by(const Device& device) { devices_.push_back(&device); }
  bp_buffer_t buffer() const;

 private:
  std::shared_ptr<std::vector<char>> bytes_;
  std::vector<const Device*> devices_;
};

// Returns a copy of a device's buffer.
Result<CopyMemory> copy_to_host(Device& device, SpareLanes& lanes, const bp_buffer_t& from);

}  // namespace backplane::c_api
