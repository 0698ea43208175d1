// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {

void add_loss_cases(OpCases& cases) {
  for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}) {
    for (const char* reduction : {"none", "sum", "mean"}) {
      for (const bool weights : {false, true}) {
        for (const bool planes : {false, true}) {
          for (const bool ignore : {false, true}) {
            const std::string variant = std::string(reduction) + (weights ? "_weights" : "") +
                                        (planes ? "_planes" : "") + (ignore ? "_ignored" : "");
            for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16}) {
              cases.add_to(kExtended, op, dtype, variant, [=](Random& random) {
                Problem problem{op, {{"reduction", std::string(reduction)}}, {}};
                if (ignore) problem.attributes.push_back({"ignore_index", int64_t{1}});
                problem.arguments.emplace_back(
                    random_tensor(random, dtype, planes ? Extents{3, 5, 2, 4} : Extents{6, 5}, Fill::kWide));
                Array target(BP_DTYPE_INT64, planes ? Extents{3, 2, 4} : Extents{6});
                for (double& x : target.values) x = static_cast<double>(random.integer(0, 4));
                target.values[0] = 2;  // at least one position is not ignored
                problem.arguments.emplace_back(to_tensor(target));
                if (weights) problem.arguments.emplace_back(random_tensor(random, dtype, {5}, Fill::kPositive));
                if (std::string_view(op) == "SoftmaxCrossEntropyLoss" && planes) problem.outputs = 2;
                return problem;
              });
            }
          }
        }
      }
    }
  }
}

}  // namespace backplane::conform
