// SPDX-License-Identifier: Apache-2.0
// Reports on environments, models and sessions as JSON. The schemas are stable, because tools print these reports with
// --json.
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
