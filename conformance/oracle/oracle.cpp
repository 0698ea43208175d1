// SPDX-License-Identifier: Apache-2.0
#include "oracle/oracle.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace backplane::conform {
namespace {

template <class T>
const T* find(const Attributes& attributes, std::string_view name) {
  for (const Attribute& attribute : attributes) {
    if (attribute.name == name) return std::get_if<T>(&attribute.value);
  }
  return nullptr;
}

}  // namespace

const Array& Call::in(size_t i) const {
  if (!has(i)) throw std::invalid_argument("input " + std::to_string(i) + " is missing");
  return *inputs_[i];
}

std::vector<int64_t> Call::integers(size_t i) const {
  const Array& array = in(i);
  return {array.values.begin(), array.values.end()};
}

int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  const auto* value = find<int64_t>(attributes_, name);
  return value == nullptr ? otherwise : *value;
}

double Call::real(std::string_view name, double otherwise) const {
  const auto* value = find<float>(attributes_, name);
  return value == nullptr ? otherwise : *value;
}

std::string_view Call::text(std::string_view name) const {
  const auto* value = find<std::string>(attributes_, name);
  return value == nullptr ? std::string_view() : *value;
}

std::vector<int64_t> Call::ints(std::string_view name, std::vector<int64_t> otherwise) const {
  const auto* value = find<std::vector<int64_t>>(attributes_, name);
  return value == nullptr ? otherwise : *value;
}

std::optional<uint32_t> newest_form(const std::vector<uint32_t>& versions, uint32_t opset, bool brain) {
  // Operators with a form of operator set 22 learnt BFLOAT16 there; the others know it in their first form listed.
  const auto since_22 = std::find(versions.begin(), versions.end(), 22u);
  const auto first = brain && since_22 != versions.end() ? since_22 : versions.begin();
  const auto newer = std::upper_bound(first, versions.end(), opset);
  if (newer == first) return std::nullopt;
  return *(newer - 1);
}

std::vector<const Operator*> all_operators() {
  std::vector<const Operator*> all;
  for (const auto family : {unary_operators(), binary_operators(), dot_operators(), conv_operators(), pool_operators(),
                            normalize_operators(), reduce_operators(), shape_operators(), select_operators(),
                            resize_operators(), quantize_operators()}) {
    for (const Operator& op : family) all.push_back(&op);
  }
  return all;
}

const Operator& find_operator(std::string_view name) {
  for (const Operator* op : all_operators()) {
    if (op->name == name) return *op;
  }
  throw std::invalid_argument("the oracle has no operator '" + std::string(name) + "'");
}

}  // namespace backplane::conform
