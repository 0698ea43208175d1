// SPDX-License-Identifier: Apache-2.0
// Creates sessions whose placement may use measured costs.
#pragma once

#include <memory>

#include "session/session.h"

namespace backplane {

// Does all steps from a model to programs: coverage, measurements that `request.costs` asks for, placement, compiling.
Result<std::shared_ptr<Session>> create_session(const std::shared_ptr<Environment>& environment,
                                                std::shared_ptr<const model::Model> model,
                                                const SessionRequest& request);

}  // namespace backplane
