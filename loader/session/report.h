// SPDX-License-Identifier: Apache-2.0
// What an environment, a model and a session say of themselves as JSON. The schemas are stable: tools print them as
// they are.
#pragma once

#include <string>

#include "discover/environment.h"
#include "ir/graph.h"
#include "session/session.h"

namespace backplane {

std::string report(const Environment& environment);
std::string report(const model::Model& model);
std::string report(const Session& session);

}  // namespace backplane
