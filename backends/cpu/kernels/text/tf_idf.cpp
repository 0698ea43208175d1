// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer: counts the n-grams of a pool in rows of integers or strings. Up to `max_skip_count` items may be
// skipped between adjacent items of an n-gram.
#include <cstring>
#include <unordered_map>

#include "kernels/common/values.h"
#include "runtime/keyed_hash.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

// The attributes of the node. The distinct items of the pool are numbered.
struct Vectorizer {
  int64_t shortest = 1, longest = 1, max_skips = 0;
  bool counts = true;   // false: any positive count is treated as 1
  bool weighs = false;  // multiply by the weight of the n-gram
  int64_t width = 0;
  std::unordered_map<int64_t, int32_t, KeyedHash> numbers;
  std::unordered_map<std::string, int32_t, KeyedHash> texts;
  struct Gram {
    int64_t column;
    float weight;
  };
  std::unordered_map<std::string, Gram, KeyedHash> grams;  // by the bytes of the n-gram's item numbers
};

void append(std::string& key, int32_t item) {
  char bytes[sizeof(item)];
  std::memcpy(bytes, &item, sizeof(item));
  key.append(bytes, sizeof(item));
}

// Reads the attributes. Returns an error message, or an empty string if they are valid.
std::string read(const Node& node, Vectorizer& v) {
  v.shortest = node.attr("min_gram_length", int64_t{1});
  v.longest = node.attr("max_gram_length", int64_t{1});
  v.max_skips = std::min<int64_t>(node.attr("max_skip_count", int64_t{0}), INT32_MAX);
  std::string mode = node.attr("mode", "TF");
  v.counts = mode != "IDF";
  v.weighs = mode != "TF";
  std::vector<int64_t> begins = node.ints("ngram_counts"), columns = node.ints("ngram_indexes");
  std::vector<int64_t> integers = node.ints("pool_int64s");
  std::vector<std::string> words = node.texts("pool_strings");
  std::vector<float> weights = node.floats("weights");
  if (v.shortest < 1 || v.longest < v.shortest || v.max_skips < 0)
    return "min_gram_length is " + std::to_string(v.shortest) + ", max_gram_length " + std::to_string(v.longest) +
           " and max_skip_count " + std::to_string(v.max_skips) +
           "; the lengths must be positive and in ascending order, and the count not negative";
  bool of_words = !words.empty();
  auto size = static_cast<int64_t>(of_words ? words.size() : integers.size());
  if (!weights.empty() && weights.size() != columns.size())
    return "weights has " + std::to_string(weights.size()) + " entries, but ngram_indexes has " +
           std::to_string(columns.size());

  size_t gram = 0;
  for (size_t length = 1; length <= begins.size(); ++length) {
    int64_t begin = begins[length - 1];
    int64_t end = length < begins.size() ? begins[length] : size;
    auto step = static_cast<int64_t>(length);
    if (begin < 0 || begin > end || end > size || (end - begin) % step != 0)
      return "ngram_counts puts the n-grams of " + std::to_string(length) + " items at [" + std::to_string(begin) +
             ", " + std::to_string(end) + ") of a pool of " + std::to_string(size) +
             " items; there must be whole n-grams inside the pool";
    for (int64_t i = begin; i < end; i += step, ++gram) {
      if (gram >= columns.size())
        return "ngram_indexes has " + std::to_string(columns.size()) + " entries, but the pool has more n-grams";
      if (columns[gram] < 0 || columns[gram] > INT32_MAX)
        return "ngram_indexes contains " + std::to_string(columns[gram]) + "; it must be 0 to 2^31 - 1";
      std::string key;
      for (int64_t k = i; k < i + step; ++k) {
        auto at = static_cast<size_t>(k);
        append(key, of_words
                        ? v.texts.try_emplace(words[at], static_cast<int32_t>(v.texts.size())).first->second
                        : v.numbers.try_emplace(integers[at], static_cast<int32_t>(v.numbers.size())).first->second);
      }
      v.width = std::max(v.width, columns[gram] + 1);
      v.grams.emplace(std::move(key), Vectorizer::Gram{columns[gram], weights.empty() ? 1.0f : weights[gram]});
    }
  }
  return {};
}

// Returns the numbers of the items in a tensor, -1 for items that are not in the pool.
std::vector<int32_t> items_of(const Vectorizer& v, const Tensor& tensor) {
  require_memory(tensor.shape.elements(), sizeof(int32_t) + sizeof(int64_t));
  std::vector<int32_t> items(static_cast<size_t>(tensor.shape.elements()), -1);
  auto look_up = [](const auto& map, const auto& key) {
    auto found = map.find(key);
    return found == map.end() ? -1 : found->second;
  };
  Pace pace;
  if (tensor.dtype == BP_DTYPE_STRING) {
    Texts texts(tensor);
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string_view text = texts[static_cast<int64_t>(i)];
      pace.spend(64 + static_cast<int64_t>(text.size()));
      items[i] = look_up(v.texts, std::string(text));
    }
  } else {
    std::vector<int64_t> numbers = integers(tensor);
    for (size_t i = 0; i < items.size(); ++i) {
      pace.spend(32);
      items[i] = look_up(v.numbers, numbers[i]);
    }
  }
  return items;
}

void count(const Vectorizer& v, std::span<const int32_t> items, float* row) {
  auto n = static_cast<int64_t>(items.size());
  std::string key;
  Pace pace;
  for (int64_t length = v.shortest; length <= std::min(v.longest, n); ++length) {
    for (int64_t distance = 1; distance <= v.max_skips + 1; ++distance) {
      if ((length - 1) > (n - 1) / distance) break;  // the n-gram would be longer than the row
      for (int64_t begin = 0; begin + (length - 1) * distance < n; ++begin) {
        pace.spend(32 + 4 * length);
        key.clear();
        for (int64_t k = 0; k < length; ++k) append(key, items[static_cast<size_t>(begin + k * distance)]);
        auto found = v.grams.find(key);
        if (found == v.grams.end()) continue;
        float& cell = row[found->second.column];
        float weight = v.weighs ? found->second.weight : 1.0f;
        cell = v.counts ? cell + weight : weight;
      }
      if (length == 1) break;  // a single item has no gaps in which items could be skipped
    }
  }
}

Verdict supports(const Node& node) {
  if (Verdict verdict = expect_operands(node, 1, 1); !verdict) return verdict;
  if (Verdict verdict = attribute_in(node, "mode", "TF", {"TF", "IDF", "TFIDF"}); !verdict) return verdict;
  if (((kIndexTypes | just(BP_DTYPE_STRING)) >> node.input_type(0).dtype & 1) == 0)
    return no(BP_REASON_DTYPE,
              std::string("input 0 has the unsupported data type ") + dtype_name(node.input_type(0).dtype));
  Vectorizer v;
  std::string wrong = read(node, v);
  return wrong.empty() ? yes() : no(BP_REASON_ATTRIBUTE, wrong);
}

std::unique_ptr<Kernel> create(const Node& node) {
  Vectorizer v;
  read(node, v);
  return make_value_kernel([v = std::move(v)](Values inputs, Values outputs) -> Failed {
    Shape shape = inputs[0].tensor.shape;
    if (shape.rank() != 1 && shape.rank() != 2)
      return "the input has extents " + to_string(shape) + "; they must be [C] or [N,C]";
    std::vector<int32_t> items = items_of(v, inputs[0].tensor);
    auto columns = static_cast<size_t>(shape[shape.rank() - 1]);
    auto rows = shape.rank() == 2 ? static_cast<size_t>(shape[0]) : size_t{1};
    shape[shape.rank() - 1] = v.width;
    outputs[0] = Value::allocate(BP_DTYPE_FLOAT, shape);
    auto* result = outputs[0].tensor.as<float>();
    if (shape.elements() == 0) return std::nullopt;
    std::fill_n(result, shape.elements(), 0.0f);
    for (size_t r = 0; r < rows; ++r)
      count(v, std::span(items).subspan(r * columns, columns), result + r * static_cast<size_t>(v.width));
    return std::nullopt;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> tf_idf_rows() {
  static constexpr Row kRows[] = {
      {"", "TfIdfVectorizer", 9, supports, create, kTexts},
  };
  return kRows;
}

}  // namespace backplane::cpu
