// SPDX-License-Identifier: Apache-2.0
// protozero with std::string_view as its view type, and checks for conditions that its reader only asserts.
#pragma once

#include <string_view>

#define PROTOZERO_USE_VIEW std::string_view
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "import/onnx_fields.h"

namespace backplane::model::wire {

using Reader = protozero::pbf_reader;
using Writer = protozero::pbf_writer;

// Each returns whether the current field has the wire type that a group of getters needs. Callers skip the field
// otherwise, because the getters only assert the wire type.
inline bool is_varint(const Reader& r) {
  return r.wire_type() == protozero::pbf_wire_type::varint;
}
inline bool is_bytes(const Reader& r) {
  return r.wire_type() == protozero::pbf_wire_type::length_delimited;
}
inline bool is_fixed32(const Reader& r) {
  return r.wire_type() == protozero::pbf_wire_type::fixed32;
}
inline bool is_fixed64(const Reader& r) {
  return r.wire_type() == protozero::pbf_wire_type::fixed64;
}

}  // namespace backplane::model::wire
