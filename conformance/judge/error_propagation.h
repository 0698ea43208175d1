// SPDX-License-Identifier: Apache-2.0
// How errors of inputs propagate to the outputs of operators.
#pragma once

#include <string_view>
#include <vector>

#include "judge/oracle.h"

namespace backplane::conform {

// Bounds the change of each output element if element i of input k changes by at most errors[k][i]. An empty entry of
// `errors` means an exact input. A bound is infinite if none is known. `result` holds the results for exact inputs.
using Errors = std::vector<std::vector<double>>;
using ErrorPropagation = Errors (*)(std::string_view op, const Call& call, const Errors& errors,
                                    const References& result);
// NULL if the operator has no error propagation.
ErrorPropagation find_error_propagation(std::string_view op);

}  // namespace backplane::conform
