// SPDX-License-Identifier: Apache-2.0
#include "ops/along.h"

namespace backplane::opencl {

Tensor zero(Emit& e, bp_dtype_t dtype) {
  return e.table(dtype, {}, std::vector<std::byte>(bytes_of(dtype)));
}

void emit_along(Emit& e, const std::vector<Taps>& tables, const Tensor& fill) {
  Tensor x = e.input(0);
  if (tables.empty()) return e.alias(0, x, x.shape);
  for (size_t i = 0; i < tables.size(); ++i) {
    const Taps& t = tables[i];
    Shape shape = x.shape;
    shape[t.axis] = t.to;
    const Tensor y = i + 1 == tables.size() ? e.output(0, shape) : e.scratch(x.dtype, shape);
    const Tensor places = e.table(BP_DTYPE_INT32, {static_cast<int64_t>(t.places.size())}, t.places);
    const Tensor weights =
        t.count == 1 ? places : e.table(BP_DTYPE_FLOAT, {static_cast<int64_t>(t.weights.size())}, t.weights);
    const int64_t outer = elements(shape, 0, t.axis), inner = elements(shape, t.axis + 1, shape.size());
    e.launch("along", "along",
             "-DTYPE=" + std::string(t.count == 1 ? word_name(x.dtype) : type_name(x.dtype)) +
                 " -DTAPS=" + std::to_string(t.count))
        .in(x)
        .in(fill ? fill : x)
        .in(places)
        .in(weights)
        .out(y)
        .arg(outer)
        .arg(x.shape[t.axis])
        .arg(t.to)
        .arg(inner)
        .range(inner, t.to, outer);
    x = y;
  }
}

}  // namespace backplane::opencl
