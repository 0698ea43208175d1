// SPDX-License-Identifier: Apache-2.0
// How errors of inputs propagate to the outputs of an operator.
#pragma once

#include <string_view>
#include <vector>

#include "judge/oracle.h"

namespace backplane::conform {

// How far each output of a call may move when element i of input k moves by at most errors[k][i]; an empty entry is an
// input that does not move. Infinite where no bound can be given. `result` is the unmoved result.
using Errors = std::vector<std::vector<double>>;
using ErrorPropagation = Errors (*)(std::string_view op, const Call& call, const Errors& errors,
                                    const References& result);
// NULL if the oracle knows no bound for operators behind this one.
ErrorPropagation find_error_propagation(std::string_view op);

}  // namespace backplane::conform
