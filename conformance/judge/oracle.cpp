// SPDX-License-Identifier: Apache-2.0
#include "judge/oracle.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace backplane::conform {
namespace {

std::span<const FamilyOperators> operator_families;

template <class T>
const T* find(const Attributes& attributes, std::string_view name) {
  for (const Attribute& attribute : attributes) {
    if (attribute.name != name) continue;
    const T* value = std::get_if<T>(&attribute.value);
    if (value == nullptr) throw std::invalid_argument("attribute '" + attribute.name + "' has another type");
    return value;
  }
  return nullptr;
}

}  // namespace

const Array& Call::in(size_t i) const {
  if (!has(i)) throw std::invalid_argument("input " + std::to_string(i) + " is missing");
  return *inputs_[i];
}

const Array& Call::in(size_t i, int64_t least_rank) const {
  const Array& array = in(i);
  if (array.rank() >= least_rank) return array;
  throw std::invalid_argument("input " + std::to_string(i) + " has rank " + std::to_string(array.rank()) +
                              "; it must be at least " + std::to_string(least_rank));
}

std::vector<int64_t> Call::integers(size_t i) const {
  const Array& array = in(i);
  if (array.rank() > 1 || is_float(array.dtype))
    throw std::invalid_argument("input " + std::to_string(i) + " is not a vector of integers");
  std::vector<int64_t> integers;
  for (const double x : array.values) integers.push_back(whole(x));
  return integers;
}

double Call::single(size_t i) const {
  if (in(i).count() != 1)
    throw std::invalid_argument("input " + std::to_string(i) + " must have one element, and has " +
                                std::to_string(in(i).count()));
  return in(i).values[0];
}

const std::vector<double>& Call::vector(size_t i, int64_t count) const {
  if (in(i).extents != Extents{count})
    throw std::invalid_argument("input " + std::to_string(i) + " is not a vector of " + std::to_string(count));
  return in(i).values;
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

std::vector<double> Call::reals(std::string_view name) const {
  const auto* value = find<std::vector<float>>(attributes_, name);
  return value == nullptr ? std::vector<double>() : std::vector<double>(value->begin(), value->end());
}

std::optional<uint32_t> newest_form(const std::vector<uint32_t>& versions, uint32_t opset, bool brain) {
  // No version before 13 supports BFLOAT16. If an operator has a version 22, that one and later ones do. Other
  // operators support it in every listed version from 13 on.
  const auto since_22 = std::find(versions.begin(), versions.end(), 22u);
  const auto since_13 = std::lower_bound(versions.begin(), versions.end(), 13u);
  const auto first = !brain ? versions.begin() : since_22 != versions.end() ? since_22 : since_13;
  const auto newer = std::upper_bound(first, versions.end(), opset);
  if (newer == first) return std::nullopt;
  return *(newer - 1);
}

void drop_newer_attributes(std::string_view op, uint32_t version, Attributes& attributes) {
  struct Added {
    std::string_view op, attribute;
    uint32_t since;
  };
  // Attributes that cases set and that some of the listed versions of their operators lack.
  constexpr Added kAdded[] = {
      {"Attention", "left_window_size", 25},
      {"Attention", "right_window_size", 25},
      {"Cast", "round_mode", 24},
      {"Cast", "saturate", 19},
      {"CastLike", "round_mode", 24},
      {"CastLike", "saturate", 19},
      {"SpaceToDepth", "mode", 28},
  };
  for (const Added& added : kAdded) {
    if (added.op != op || added.since <= version) continue;
    std::erase_if(attributes, [&](const Attribute& attribute) { return attribute.name == added.attribute; });
  }
}

void set_operators(std::span<const FamilyOperators> families) {
  operator_families = families;
}

std::vector<const Operator*> all_operators() {
  if (operator_families.empty()) throw std::logic_error("set_operators() has not been called");
  std::vector<const Operator*> all;
  for (const FamilyOperators family : operator_families) {
    for (const Operator& op : family()) all.push_back(&op);
  }
  return all;
}

const Operator& find_operator(std::string_view name) {
  for (const Operator* op : all_operators()) {
    if (op->name == name) return *op;
  }
  throw std::invalid_argument("the oracle has no operator '" + std::string(name) + "'");
}

References compute(std::string_view op, const Call& call) {
  References results = find_operator(op).compute(call);
  if (results.size() >= call.output_count()) return results;
  throw std::invalid_argument("the oracle returns fewer outputs of '" + std::string(op) + "' than the call has: " +
                              std::to_string(results.size()) + " instead of " + std::to_string(call.output_count()));
}

}  // namespace backplane::conform
