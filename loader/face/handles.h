// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of loader.h are. Each keeps what it needs alive by itself.
#pragma once

#include <memory>
#include <mutex>

#include "discover/environment.h"
#include "face/fence.h"
#include "model/graph.h"
#include "model/view.h"
#include "run/exec.h"
#include "session.h"

struct bp_env_t {
  std::shared_ptr<backplane::Environment> environment;
  uint32_t generation = backplane::face::generation();
};

struct bp_model_t {
  std::shared_ptr<const backplane::model::Model> model;
  uint32_t generation = backplane::face::generation();

  // The whole graph in canonical form. Sessions have views of their own: many models are never asked for this one.
  const backplane::model::View& view() const;

 private:
  mutable std::once_flag viewed_;
  mutable std::shared_ptr<const backplane::model::View> view_;
};

struct bp_session_t {
  std::shared_ptr<backplane::Session> session;
  uint32_t generation = backplane::face::generation();
};

struct bp_exec_t {
  std::unique_ptr<backplane::Exec> exec;
  uint32_t generation = backplane::face::generation();
};

namespace backplane::face {

// The handle of a model that was made.
bp_model_t* wrap(std::shared_ptr<const model::Model> model);

}  // namespace backplane::face
