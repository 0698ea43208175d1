// SPDX-License-Identifier: Apache-2.0
// How errors of inputs propagate to the outputs of an operator.
#pragma once

#include <string_view>
#include <vector>

#include "judge/oracle.h"

namespace backplane::conform {

// Bounds the change of each output of a call if element i of input k changes by at most errors[k][i]; an empty entry is
// an exact input. Infinite if no bound is known. `result` is the result for exact inputs.
using Errors = std::vector<std::vector<double>>;
using ErrorPropagation = Errors (*)(std::string_view op, const Call& call, const Errors& errors,
                                    const References& result);
// NULL if the oracle has no error propagation for the operator.
ErrorPropagation find_error_propagation(std::string_view op);

}  // namespace backplane::conform
