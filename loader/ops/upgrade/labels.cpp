// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "ops/upgrade/upgrades.h"

namespace backplane::ops {

// In the old form, one list maps strings to their indices or indices to strings, depending on the input's type. The new
// form has lists of keys and values.
Status label_encoder_keys(Rewrite& r) {
  const Attribute* classes = r.node.find("classes_strings");
  if (!classes) return r.invalid("attribute 'classes_strings' is missing");
  std::vector<int64_t> numbers(classes->strings().size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const bool to_numbers = r.dtype(r.node.inputs[0]) == BP_DTYPE_STRING;
  if (!to_numbers && r.dtype(r.node.inputs[0]) != BP_DTYPE_INT64) {
    return r.unsupported("the data type of its input is not known; declare it in the model");
  }
  Attribute strings = *classes;
  strings.name = to_numbers ? "keys_strings" : "values_strings";
  r.node.erase("classes_strings");
  r.node.set(std::move(strings));
  r.node.set(Attribute::of(to_numbers ? "values_int64s" : "keys_int64s", std::move(numbers)));
  return {};
}

}  // namespace backplane::ops
