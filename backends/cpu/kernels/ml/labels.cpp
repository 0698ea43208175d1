// SPDX-License-Identifier: Apache-2.0
// LabelEncoder, CategoryMapper: look up each element in a dictionary.
#include <bit>
#include <cmath>
#include <unordered_map>

#include "backplane/sdk/fence.hpp"
#include "kernels/ml/support.h"
#include "runtime/keyed_hash.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

using ml::kDomain;
using Scalars = TypeList<float, double, int16_t, int32_t, int64_t>;
constexpr bp_dtype_set_t kScalars = set_of(Scalars{}) | just(BP_DTYPE_STRING);

// Returns the dictionary key of a number: its bytes. (A string is its own key.) All NaNs have the same key, and -0 has
// the key of 0.
template <class T>
std::string key_of(T number) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(number)) number = std::numeric_limits<T>::quiet_NaN();
    if (number == 0) number = 0;
  }
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::vector<std::string> keys_of(const Tensor& tensor) {
  require_memory(tensor.shape.elements(), sizeof(std::string));
  std::vector<std::string> keys;
  Pace pace;
  if (tensor.dtype == BP_DTYPE_STRING) {
    for (std::string_view text : views(tensor)) {
      pace.spend(64 + static_cast<int64_t>(text.size()));
      keys.emplace_back(text);
    }
    return keys;
  }
  dispatch<Scalars>(tensor.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < tensor.shape.elements(); ++i) {
      pace.spend(64);
      keys.push_back(key_of(tensor.as<const T>()[i]));
    }
  });
  return keys;
}

// Returns the keys or values (`stem`) as a tensor, from the attribute <stem>_tensor, _strings, _int64s or _floats.
// Returns nullopt if none is present.
std::optional<Value> list_of(const Node& node, const std::string& stem) {
  if (std::optional<Value> tensor = ml::tensor_attribute(node, stem + "_tensor")) return tensor;
  if (node.find(stem + "_strings") != nullptr) {
    std::vector<std::string> texts = node.texts(stem + "_strings");
    return make_texts(Shape{static_cast<int64_t>(texts.size())}, texts);
  }
  auto filled = [](bp_dtype_t dtype, const auto& list) {
    Value value = Value::allocate(dtype, Shape{static_cast<int64_t>(list.size())});
    std::ranges::copy(list, static_cast<typename std::decay_t<decltype(list)>::value_type*>(value.tensor.data));
    return value;
  };
  if (node.find(stem + "_int64s") != nullptr) return filled(BP_DTYPE_INT64, node.ints(stem + "_int64s"));
  if (node.find(stem + "_floats") != nullptr) return filled(BP_DTYPE_FLOAT, node.floats(stem + "_floats"));
  return std::nullopt;
}

// Returns the result for elements that are not among the keys.
Value default_of(const Node& node, bp_dtype_t dtype) {
  if (std::optional<Value> tensor = ml::tensor_attribute(node, "default_tensor")) return *tensor;
  if (dtype == BP_DTYPE_STRING) {
    std::vector<std::string> text = {node.attr("default_string", "_Unused")};
    return make_texts(Shape{1}, text);
  }
  return dispatch<Scalars>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    bool is_float = std::is_floating_point_v<T>;
    return make_scalar<T>(dtype, is_float ? static_cast<T>(node.attr("default_float", -0.0f))
                                          : static_cast<T>(node.attr("default_int64", int64_t{-1})));
  });
}

struct Dictionary {
  std::unordered_map<std::string, int64_t, KeyedHash> indices;  // index of each key in `values`
  Value values;
  Value fallback;

  Value look_up(const Tensor& x) const {
    std::vector<std::string> keys = keys_of(x);
    Pace pace;
    if (values.tensor.dtype == BP_DTYPE_STRING) {
      std::vector<std::string_view> texts;
      Texts known(values.tensor), other(fallback.tensor);
      for (const std::string& key : keys) {
        pace.spend(32 + static_cast<int64_t>(key.size()));
        auto found = indices.find(key);
        texts.push_back(found == indices.end() ? other[0] : known[found->second]);
      }
      return make_texts(x.shape, texts);
    }
    Value result = Value::allocate(values.tensor.dtype, x.shape);
    int64_t to = 0;
    for (const std::string& key : keys) {
      pace.spend(32 + static_cast<int64_t>(key.size()));
      auto found = indices.find(key);
      const Value& from = found == indices.end() ? fallback : values;
      copy_elements(values.tensor.dtype, from.tensor.data, found == indices.end() ? 0 : found->second,
                    result.tensor.data, to++, 1);
    }
    return result;
  }
};

std::unique_ptr<Kernel> make_look_up(const Value& keys, Value values, Value fallback) {
  Dictionary dictionary{{}, std::move(values), std::move(fallback)};
  int64_t index = 0;
  for (std::string& key : keys_of(keys.tensor)) dictionary.indices.insert_or_assign(std::move(key), index++);
  return make_value_kernel([dictionary = std::move(dictionary)](Values in, Values out) -> Failed {
    out[0] = dictionary.look_up(in[0].tensor);
    return std::nullopt;
  });
}

// ---- LabelEncoder

Verdict supports_encoder(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {kScalars}); !verdict) return verdict;
  try {
    std::optional<Value> keys = list_of(node, "keys"), values = list_of(node, "values");
    if (!keys || !values) return no(BP_REASON_ATTRIBUTE, !keys ? "keys_* is missing" : "values_* is missing");
    bp_dtype_t dtype = values->tensor.dtype;
    if (keys->tensor.dtype != node.input_type(0).dtype || dtype != node.output_type(0).dtype)
      return no(BP_REASON_ATTRIBUTE, std::string("keys_* has data type ") + dtype_name(keys->tensor.dtype) +
                                         " and values_* " + dtype_name(dtype) + "; they must be " +
                                         dtype_name(node.input_type(0).dtype) + " and " +
                                         dtype_name(node.output_type(0).dtype) + ", those of the input and the output");
    if ((kScalars >> dtype & 1) == 0)
      return no(BP_REASON_ATTRIBUTE, std::string("values_* has the unsupported data type ") + dtype_name(dtype));
    if (keys->tensor.shape.elements() != values->tensor.shape.elements())
      return no(BP_REASON_ATTRIBUTE, std::to_string(keys->tensor.shape.elements()) + " keys for " +
                                         std::to_string(values->tensor.shape.elements()) +
                                         " values; the numbers must be equal");
    Value fallback = default_of(node, dtype);
    if (fallback.tensor.dtype != dtype || fallback.tensor.shape.elements() != 1)
      return no(BP_REASON_ATTRIBUTE, "default_tensor is not a single value of the output's data type");
  } catch (const sdk::Error& failure) {
    return no(BP_REASON_ATTRIBUTE, failure.text);
  }
  return yes();
}

std::unique_ptr<Kernel> create_encoder(const Node& node) {
  Value values = *list_of(node, "values");
  Value fallback = default_of(node, values.tensor.dtype);
  return make_look_up(*list_of(node, "keys"), std::move(values), std::move(fallback));
}

// ---- CategoryMapper: maps strings to integers or integers to strings

Verdict supports_mapper(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {just(BP_DTYPE_INT64) | just(BP_DTYPE_STRING)}); !verdict) return verdict;
  if (node.ints("cats_int64s").size() != node.texts("cats_strings").size())
    return no(BP_REASON_ATTRIBUTE, "cats_int64s has " + std::to_string(node.ints("cats_int64s").size()) +
                                       " entries, but cats_strings has " +
                                       std::to_string(node.texts("cats_strings").size()));
  if (node.input_type(0).dtype == node.output_type(0).dtype)
    return no(BP_REASON_DTYPE, "input and output have the same data type; one must be INT64, the other STRING");
  return yes();
}

std::unique_ptr<Kernel> create_mapper(const Node& node) {
  bp_dtype_t target = node.output_type(0).dtype;
  std::vector<std::string> strings = node.texts("cats_strings");
  std::vector<int64_t> numbers = node.ints("cats_int64s");
  Shape shape{static_cast<int64_t>(numbers.size())};
  Value texts = make_texts(shape, strings);
  Value ints = Value::allocate(BP_DTYPE_INT64, shape);
  std::ranges::copy(numbers, ints.tensor.as<int64_t>());
  return target == BP_DTYPE_STRING ? make_look_up(ints, texts, default_of(node, target))
                                   : make_look_up(texts, ints, default_of(node, target));
}

}  // namespace

[[gnu::cold]] std::span<const Row> labels_rows() {
  static constexpr Row kRows[] = {
      {kDomain, "CategoryMapper", 1, supports_mapper, create_mapper, kTexts},
      {kDomain, "LabelEncoder", 2, supports_encoder, create_encoder, kTexts},
  };
  return kRows;
}

}  // namespace backplane::cpu
