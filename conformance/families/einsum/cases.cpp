// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {

void add_einsum_cases(OpCases& cases) {
  struct Row {
    const char* variant;
    const char* equation;
    std::vector<Extents> inputs;
  };
  const Row rows[] = {
      {"product", "ij,jk->ik", {{5, 17}, {17, 4}}},
      {"batch", "bij,bjk->bik", {{3, 4, 9}, {3, 9, 5}}},
      {"implicit", "ij,jk", {{4, 7}, {7, 3}}},
      {"transpose", "ijk->kij", {{3, 4, 5}}},
      {"sum", "ij->i", {{4, 33}}},
      {"all", "ij->", {{6, 7}}},
      {"diagonal", "ii->i", {{6, 6}}},
      {"trace", "bii->b", {{3, 5, 5}}},
      {"outer", "i,j->ij", {{6}, {7}}},
      {"elements", "ij,ij->ij", {{4, 6}, {4, 6}}},
      {"inner", "ij,ij->i", {{4, 65}, {4, 65}}},
      {"three", "ij,jk,kl->il", {{3, 4}, {4, 5}, {5, 2}}},
      {"heads", "bqhd,bkhd->bhqk", {{2, 3, 2, 8}, {2, 4, 2, 8}}},
      {"spaces", "b n h w, n d -> b d h w", {{2, 3, 2, 2}, {3, 4}}},
  };
  for (const Row& row : rows) {
    for (const bp_dtype_t dtype : real_types()) {
      for (const bool is_whole : {false, true}) {
        cases.add_to(kExtended, "Einsum", dtype, std::string(row.variant) + (is_whole ? "_whole" : ""),
                     [=](Random& random) {
                       Problem problem{"Einsum", {{"equation", std::string(row.equation)}}, {}};
                       for (const Extents& extents : row.inputs)
                         problem.arguments.emplace_back(
                             random_tensor(random, dtype, extents, is_whole ? Fill::kWhole : Fill::kAroundZero));
                       problem.exact_sums = is_whole;
                       return problem;
                     });
      }
    }
  }
  for (const Extents& extents : {Extents{3, 3}, Extents{2, 4, 4}, Extents{1, 1}, Extents{7, 7}}) {
    cases.add_to(kExtended, "Det", BP_DTYPE_FLOAT,
                 "rank" + std::to_string(extents.size()) + "_" + std::to_string(extents.back()), [=](Random& random) {
                   Array x(BP_DTYPE_FLOAT, extents);
                   // The dominant diagonal keeps the determinant far from 0, and so its relative error small.
                   for_each_index(extents, [&](const Index& at) {
                     const bool is_diagonal = at.back() == at[at.size() - 2];
                     x.at(at) = random.uniform(-1, 1) + (is_diagonal ? 3 : 0);
                   });
                   return Problem{"Det", {}, {to_tensor(x)}};
                 });
  }
}

}  // namespace backplane::conform
