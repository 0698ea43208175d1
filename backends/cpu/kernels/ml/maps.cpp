// SPDX-License-Identifier: Apache-2.0
// ZipMap, CastMap, DictVectorizer: convert rows of numbers to maps, and maps to rows.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "kernels/ml/support.h"
#include "runtime/keyed_hash.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

using ml::kDomain;

std::string int_key(int64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}
std::vector<std::string> int_keys(const std::vector<int64_t>& numbers) {
  std::vector<std::string> keys(numbers.size());
  std::ranges::transform(numbers, keys.begin(), int_key);
  return keys;
}

// ---- ZipMap: returns a map for each row, from the label of a column to the value in it

std::unique_ptr<Kernel> create_zip(const Node& node) {
  std::vector<std::string> keys = node.texts("classlabels_strings");
  if (keys.empty()) keys = int_keys(node.ints("classlabels_int64s"));
  int64_t letters = 0;  // of all keys
  for (const std::string& key : keys) letters += std::ssize(key);
  return make_value_kernel([keys, letters](Values in, Values out) -> Failed {
    const Tensor& x = in[0].tensor;
    auto table = ml::table_of(x.shape);
    if (!table) return ml::no_table(x.shape);
    if (table->columns != static_cast<int64_t>(keys.size()))
      return "the rows have " + std::to_string(table->columns) + " columns, but there are " +
             std::to_string(keys.size()) + " labels";
    out[0] = Value::container(BP_KIND_SEQUENCE);
    require_memory(table->rows, static_cast<int64_t>(2 * sizeof(Value) * (1 + keys.size())) + letters);
    Pace pace;
    for (int64_t r = 0; r < table->rows; ++r) {
      pace.spend(256 * static_cast<int64_t>(keys.size()) + letters / 16);
      Value map = Value::container(BP_KIND_MAP);
      map.elements->keys = keys;
      for (size_t c = 0; c < keys.size(); ++c) {
        float number = x.as<const float>()[r * table->columns + static_cast<int64_t>(c)];
        map.elements->values.push_back(make_scalar(BP_DTYPE_FLOAT, number));
      }
      out[0].elements->values.push_back(std::move(map));
    }
    return std::nullopt;
  });
}

Verdict supports_zip(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {just(BP_DTYPE_FLOAT)}); !verdict) return verdict;
  if (node.texts("classlabels_strings").empty() == node.ints("classlabels_int64s").empty())
    return no(BP_REASON_ATTRIBUTE, std::string("classlabels_strings and classlabels_int64s are both ") +
                                       (node.texts("classlabels_strings").empty() ? "empty" : "present") +
                                       "; exactly one must be present");
  return yes();
}

// The data types of input 0's keys and values. `value` is 0 unless input 0 is a map to tensors.
struct MapTypes {
  bp_dtype_t key = 0, value = 0;
};
MapTypes map_types(const Node& node) {
  bp_type_t type = node.input_type(0);
  if (type.kind != BP_KIND_MAP || type.element >= node.graph().type_count) return {};
  const bp_type_t* element = bp_graph_type(&node.graph(), type.element);
  return {type.dtype, element->kind == BP_KIND_TENSOR ? element->dtype : 0};
}

// ---- DictVectorizer: returns the map's value for each word of the vocabulary, 0 or "" for a word that it lacks

Verdict supports_vectorizer(const Node& node) {
  MapTypes types = map_types(node);
  if (types.value == 0) return no(BP_REASON_DTYPE, "input 0 is not a map to tensors");
  bool texts = types.key == BP_DTYPE_STRING;
  if (texts ? node.texts("string_vocabulary").empty() : node.ints("int64_vocabulary").empty())
    return no(BP_REASON_ATTRIBUTE, std::string(texts ? "string" : "int64") + "_vocabulary is empty");
  return yes();
}

std::unique_ptr<Kernel> create_vectorizer(const Node& node) {
  MapTypes types = map_types(node);
  std::vector<std::string> words =
      types.key == BP_DTYPE_STRING ? node.texts("string_vocabulary") : int_keys(node.ints("int64_vocabulary"));
  return make_value_kernel([words, dtype = types.value](Values in, Values out) -> Failed {
    const Elements& map = *in[0].elements;
    std::unordered_map<std::string_view, const Tensor*, KeyedHash> entries;
    auto value = map.values.begin();
    for (const std::string& key : map.keys) entries[key] = &(value++)->tensor;
    auto entry = [&](size_t i) -> const Tensor* {
      auto found = entries.find(words[i]);
      return found == entries.end() || found->second->shape.elements() != 1 ? nullptr : found->second;
    };
    Shape shape{1, static_cast<int64_t>(words.size())};
    if (dtype == BP_DTYPE_STRING) {
      std::vector<std::string_view> texts(words.size());
      for (size_t i = 0; i < words.size(); ++i) {
        if (const Tensor* text = entry(i)) texts[i] = Texts(*text)[0];
      }
      out[0] = make_texts(shape, texts);
      return std::nullopt;
    }
    out[0] = Value::allocate(dtype, shape);
    std::memset(out[0].tensor.data, 0, static_cast<size_t>(bytes_of(out[0].tensor)));
    for (size_t i = 0; i < words.size(); ++i) {
      if (const Tensor* number = entry(i))
        copy_elements(dtype, number->data, 0, out[0].tensor.data, static_cast<int64_t>(i), 1);
    }
    return std::nullopt;
  });
}

// ---- CastMap: returns a map's values in the order of its keys (DENSE), or each at the index that is its key (SPARSE)

constexpr int64_t kMaxColumns = int64_t{1} << 28;

Verdict supports_cast(const Node& node) {
  MapTypes types = map_types(node);
  if (types.key != BP_DTYPE_INT64 || (types.value != BP_DTYPE_FLOAT && types.value != BP_DTYPE_STRING))
    return no(BP_REASON_DTYPE, "input 0 is not a map from int64 to float or string");
  int64_t columns = node.attr("max_map", int64_t{1});
  if (node.attr("map_form", "DENSE") == "SPARSE" && (columns < 1 || columns > kMaxColumns))
    return no(BP_REASON_ATTRIBUTE, "max_map is " + std::to_string(columns) + "; it must be 1 to 2^28");
  if (Verdict verdict = attribute_in(node, "map_form", "DENSE", {"DENSE", "SPARSE"}); !verdict) return verdict;
  return attribute_in(node, "cast_to", "TO_FLOAT", {"TO_FLOAT", "TO_STRING", "TO_INT64"});
}

std::string text_of(float number) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}

template <class T>
std::optional<T> parse(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '+')) text.remove_prefix(1);
  T number{};
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc() ? std::optional(number)
                                                                                           : std::nullopt;
}

// Converts a single value to T. Returns false if a string does not begin with a number in range, or if a float does not
// fit in int64.
template <class T>
bool convert(const Tensor& from, T& to) {
  if (from.dtype == BP_DTYPE_FLOAT) {
    float number = *from.as<const float>();
    if constexpr (std::is_same_v<T, std::string>) {
      to = text_of(number);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      if (!(std::abs(number) < 9.2e18f)) return false;
      to = static_cast<int64_t>(number);
    } else {
      to = number;
    }
    return true;
  }
  std::string_view text = Texts(from)[0];
  if constexpr (std::is_same_v<T, std::string>) {
    to = text;
    return true;
  } else {
    std::optional<T> number = parse<T>(text);
    if (number) to = *number;
    return number.has_value();
  }
}

// Writes the map's values to `row`. `columns` is the width for SPARSE, negative for DENSE.
template <class T>
Failed cast(const Elements& map, int64_t columns, std::vector<T>& row) {
  std::vector<std::pair<int64_t, const Tensor*>> entries;
  auto value = map.values.begin();
  for (const std::string& bytes : map.keys) {
    int64_t key;
    std::memcpy(&key, bytes.data(), sizeof key);
    entries.emplace_back(key, &(value++)->tensor);
  }
  std::ranges::sort(entries, {}, &std::pair<int64_t, const Tensor*>::first);
  const int64_t width = columns < 0 ? std::ssize(entries) : columns;
  require_memory(width, sizeof(T));
  row.resize(static_cast<size_t>(width));
  size_t next = 0;
  for (const auto& [key, tensor] : entries) {
    if (tensor->shape.elements() != 1) return "the map's value at " + std::to_string(key) + " is not a scalar";
    if (columns >= 0 && key < 0)
      return "the map has the negative key " + std::to_string(key) + ", which the SPARSE form does not allow";
    if (columns >= 0 && key >= columns) continue;
    if (!convert(*tensor, row[columns < 0 ? next++ : static_cast<size_t>(key)]))
      return "the map's value at " + std::to_string(key) + " cannot be converted to the type in cast_to";
  }
  return std::nullopt;
}

std::unique_ptr<Kernel> create_cast(const Node& node) {
  int64_t columns = node.attr("map_form", "DENSE") == "SPARSE" ? node.attr("max_map", int64_t{1}) : -1;
  std::string target = node.attr("cast_to", "TO_FLOAT");
  return make_value_kernel([columns, target](Values in, Values out) -> Failed {
    auto finish = [&]<class T>(bp_dtype_t dtype, std::vector<T> row) -> Failed {
      if (Failed failed = cast(*in[0].elements, columns, row)) return failed;
      Shape shape{1, static_cast<int64_t>(row.size())};
      if constexpr (std::is_same_v<T, std::string>) {
        out[0] = make_texts(shape, row);
      } else {
        out[0] = Value::allocate(dtype, shape);
        std::ranges::copy(row, out[0].tensor.as<T>());
      }
      return std::nullopt;
    };
    if (target == "TO_STRING") return finish(BP_DTYPE_STRING, std::vector<std::string>());
    if (target == "TO_INT64") return finish(BP_DTYPE_INT64, std::vector<int64_t>());
    return finish(BP_DTYPE_FLOAT, std::vector<float>());
  });
}

constexpr uint32_t kAll = kTexts | kContainers;
}  // namespace

[[gnu::cold]] std::span<const Row> maps_rows() {
  static constexpr Row kRows[] = {
      {kDomain, "CastMap", 1, supports_cast, create_cast, kAll},
      {kDomain, "DictVectorizer", 1, supports_vectorizer, create_vectorizer, kAll},
      {kDomain, "ZipMap", 1, supports_zip, create_zip, kAll},
  };
  return kRows;
}

}  // namespace backplane::cpu
