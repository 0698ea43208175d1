// SPDX-License-Identifier: Apache-2.0
// ArrayFeatureExtractor, FeatureVectorizer, OneHotEncoder: operators that change the number of columns of their input.
#include <algorithm>
#include <unordered_map>

#include "kernels/ml/support.h"
#include "runtime/keyed_hash.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

using ml::kDomain;
using ml::kFeatures;

// ---- ArrayFeatureExtractor: selects positions of the last axis

Verdict supports_extractor(const Node& node) {
  return accepts(node, 2, {kFeatures | just(BP_DTYPE_STRING), just(BP_DTYPE_INT64)});
}

Failed extract(const Tensor& x, std::span<const int64_t> picks, Value& out) {
  if (x.shape.rank() == 0) return "the input is a scalar, but must have at least one dimension";
  int last = x.shape.rank() - 1;
  int64_t width = x.shape[last];
  for (int64_t pick : picks) {
    if (pick < 0 || pick >= width)
      return "position " + std::to_string(pick) + " is out of range for the " + std::to_string(width) +
             " positions of the last axis";
  }
  Shape shape = x.shape;
  if (shape.rank() == 1) shape = Shape{1, shape[0]};
  shape[shape.rank() - 1] = static_cast<int64_t>(picks.size());
  const int64_t rows = picks.empty() ? 0 : x.shape.elements(0, last);
  Pace pace;
  if (x.dtype == BP_DTYPE_STRING) {
    Texts texts(x);
    std::vector<std::string_view> chosen;
    require_memory(product({rows, static_cast<int64_t>(picks.size())}), 2 * sizeof(std::string_view));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t pick : picks) {
        pace.spend(4);
        chosen.push_back(texts[r * width + pick]);
      }
    }
    out = make_texts(shape, chosen);
    return std::nullopt;
  }
  out = Value::allocate(x.dtype, shape);
  int64_t to = 0;
  for (int64_t r = 0; r < rows; ++r) {
    pace.spend(8 * static_cast<int64_t>(picks.size()));
    for (int64_t pick : picks) copy_elements(x.dtype, x.data, r * width + pick, out.tensor.data, to++, 1);
  }
  return std::nullopt;
}

std::unique_ptr<Kernel> create_extractor(const Node&) {
  return make_value_kernel([](Values in, Values out) -> Failed {
    const Tensor& y = in[1].tensor;
    return extract(in[0].tensor, {y.as<const int64_t>(), static_cast<size_t>(y.shape.elements())}, out[0]);
  });
}

// ---- FeatureVectorizer: concatenates the rows of all inputs, each truncated or zero-padded to its width

Verdict supports_vectorizer(const Node& node) {
  if (Verdict verdict = accepts_variadic(node, kFeatures); !verdict) return verdict;
  if (node.ints("inputdimensions").size() != node.input_count()) {
    return no(BP_REASON_ATTRIBUTE, "inputdimensions has " + std::to_string(node.ints("inputdimensions").size()) +
                                       " entries for " + std::to_string(node.input_count()) + " inputs");
  }
  return yes();
}

std::unique_ptr<Kernel> create_vectorizer(const Node& node) {
  return make_kernel([widths = node.ints("inputdimensions")](Tensors inputs) -> Plan {
    int64_t rows = -1, width = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto table = ml::table_of(inputs[i].shape);
      if (!table) return fail(ml::no_table(inputs[i].shape));
      if (rows >= 0 && table->rows != rows)
        return fail("inputs have " + std::to_string(rows) + " and " + std::to_string(table->rows) +
                    " rows; the numbers must be equal");
      rows = table->rows;
      if (widths[i] < 0 || __builtin_add_overflow(width, widths[i], &width))
        return fail("inputdimensions contains " + std::to_string(widths[i]) + ", which is negative or too large");
    }
    return make_plan({Shape{rows, width}}, [=](Tensors in, Tensors out) {
      int64_t before = 0;
      Pace pace;
      for (size_t i = 0; i < in.size(); ++i) {
        int64_t columns = ml::table_of(in[i].shape)->columns;
        int64_t taken = std::min(columns, widths[i]);
        std::vector<double> row(static_cast<size_t>(widths[i]), 0.0);
        for (int64_t r = 0; r < rows; ++r) {
          pace.spend(widths[i]);
          ml::read_numbers(in[i], r * columns, taken, row.data());
          std::ranges::transform(row, out[0].as<float>() + r * width + before,
                                 [](double x) { return static_cast<float>(x); });
        }
        before += widths[i];
      }
    });
  });
}

// ---- OneHotEncoder

Verdict supports_one_hot(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {kFeatures | just(BP_DTYPE_STRING)}); !verdict) return verdict;
  bool texts = node.input_type(0).dtype == BP_DTYPE_STRING;
  if (texts ? node.texts("cats_strings").empty() : node.ints("cats_int64s").empty())
    return no(BP_REASON_ATTRIBUTE, std::string(texts ? "cats_strings" : "cats_int64s") + " is empty");
  return yes();
}

template <class Key>
std::unordered_map<Key, size_t, KeyedHash> positions(const std::vector<Key>& keys) {
  std::unordered_map<Key, size_t, KeyedHash> map;
  for (size_t i = 0; i < keys.size(); ++i) map.emplace(keys[i], i);
  return map;
}

std::unique_ptr<Kernel> create_one_hot(const Node& node) {
  auto ints = positions(node.ints("cats_int64s"));
  auto texts = positions(node.texts("cats_strings"));
  auto width = static_cast<int64_t>(std::max(node.ints("cats_int64s").size(), node.texts("cats_strings").size()));
  bool zeros = node.attr("zeros", int64_t{1}) != 0;
  return make_value_kernel([=](Values in, Values out) -> Failed {
    const Tensor& x = in[0].tensor;
    if (x.shape.rank() == BP_MAX_RANK)
      return "the input has rank " + std::to_string(BP_MAX_RANK) + ", the maximum; the result needs one dimension more";
    Shape shape = x.shape;
    shape.push_back(width);
    const int64_t count = x.shape.elements(), cells = product({count, width});
    out[0] = Value::allocate(BP_DTYPE_FLOAT, shape);
    float* y = out[0].tensor.as<float>();
    std::fill_n(y, cells, 0.0f);
    bool is_text = x.dtype == BP_DTYPE_STRING;
    std::vector<double> numbers = is_text ? std::vector<double>() : ml::numbers(x);
    Pace pace;
    for (int64_t i = 0; i < count; ++i) {
      pace.spend(32);
      std::optional<size_t> hot;
      if (is_text) {
        pace.spend(static_cast<int64_t>(Texts(x)[i].size()));
        if (auto found = texts.find(std::string(Texts(x)[i])); found != texts.end()) hot = found->second;
      } else {
        int64_t key = x.dtype == BP_DTYPE_INT64 ? x.as<const int64_t>()[i]
                      : std::abs(numbers[static_cast<size_t>(i)]) < 9.2e18
                          ? static_cast<int64_t>(numbers[static_cast<size_t>(i)])
                          : std::numeric_limits<int64_t>::min();
        if (auto found = ints.find(key); found != ints.end()) hot = found->second;
      }
      if (hot) y[i * width + static_cast<int64_t>(*hot)] = 1;
      if (!hot && !zeros)
        return "element " + std::to_string(i) + " is in no category, which is an error if the attribute zeros is 0";
    }
    return std::nullopt;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> features_rows() {
  static constexpr Row kRows[] = {
      {kDomain, "ArrayFeatureExtractor", 1, supports_extractor, create_extractor, kTexts},
      {kDomain, "FeatureVectorizer", 1, supports_vectorizer, create_vectorizer},
      {kDomain, "OneHotEncoder", 1, supports_one_hot, create_one_hot, kTexts},
  };
  return kRows;
}

}  // namespace backplane::cpu
