// SPDX-License-Identifier: Apache-2.0
#include "profiling/create_session.h"

#include <utility>

#include "profiling/measure.h"

namespace backplane {

Result<std::shared_ptr<const Session>> create_session(const std::shared_ptr<Environment>& environment,
                                                      std::shared_ptr<const model::Model> model,
                                                      const SessionRequest& request) {
  BP_ASSIGN(Covered covered, cover(*environment, std::move(model), request));
  if (request.costs != Costs::kReported && covered.devices.size() > 1)
    BP_TRY(measure_copies(*environment, covered.devices, request.cancel));
  if (request.costs == Costs::kMeasure) BP_TRY(measure_nodes(environment, *covered.model, request, covered.devices));
  return Session::create(environment, std::move(covered), request);
}

}  // namespace backplane
