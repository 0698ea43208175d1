// SPDX-License-Identifier: Apache-2.0
// Creates sessions whose placement rests on measured costs.
#pragma once

#include <memory>

#include "session/session.h"

namespace backplane {

// Everything between a model and programs: coverage, measuring what `request.costs` asks for, placement, compiling.
Result<std::shared_ptr<Session>> create_session(const std::shared_ptr<Environment>& environment,
                                                std::shared_ptr<const model::Model> model,
                                                const SessionRequest& request);

}  // namespace backplane
