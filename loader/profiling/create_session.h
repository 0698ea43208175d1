// SPDX-License-Identifier: Apache-2.0
// Creates sessions whose placement may use measured costs.
#pragma once

#include <memory>

#include "session/session.h"

namespace backplane {

// Performs all steps from a model to a session: coverage, the measurements that `request.costs` requests, placement
// and, without BP_SESSION_PLACE_ONLY, compilation.
Result<std::shared_ptr<const Session>> create_session(const std::shared_ptr<Environment>& environment,
                                                      std::shared_ptr<const model::Model> model,
                                                      const SessionRequest& request);

}  // namespace backplane
