// SPDX-License-Identifier: Apache-2.0
// Binarizer, Imputer, Normalizer, Scaler: operators that do not change the number of columns.
#include <algorithm>
#include <cmath>

#include "kernels/ml/support.h"
#include "runtime/parallel.h"

namespace backplane::cpu {
namespace {

using ml::kDomain;
using ml::kFeatures;
using Features = TypeList<float, double, int32_t, int64_t>;

Verdict supports_features(const Node& node) {
  return accepts(node, 1, {kFeatures});
}

// ---- Binarizer

std::unique_ptr<Kernel> create_binarizer(const Node& node) {
  return make_kernel([threshold = node.attr("threshold", 0.0f)](Tensors inputs) -> Plan {
    return make_plan({inputs[0].shape}, [threshold](Tensors in, Tensors out) {
      dispatch<Features>(in[0].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* x = in[0].as<const T>();
        T* y = out[0].as<T>();
        parallel(in[0].shape.elements(), kCheapGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            y[i] = static_cast<double>(x[i]) > static_cast<double>(threshold) ? T{1} : T{0};
        });
      });
    });
  });
}

// ---- Imputer

template <class T>
struct Replacement {
  T old;
  std::vector<T> values;  // one for all columns, or one for each column
};

template <class T>
void impute(const Replacement<T>& with, int64_t columns, Tensors in, Tensors out) {
  const T* x = in[0].as<const T>();
  T* y = out[0].as<T>();
  parallel(in[0].shape.elements(), kCheapGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      bool is_old = x[i] == with.old;
      if constexpr (std::is_floating_point_v<T>) is_old = is_old || (std::isnan(x[i]) && std::isnan(with.old));
      y[i] = is_old ? with.values[with.values.size() == 1 ? 0 : static_cast<size_t>(i % columns)] : x[i];
    }
  });
}

Verdict supports_imputer(const Node& node) {
  if (Verdict verdict = supports_features(node); !verdict) return verdict;
  bp_dtype_t dtype = node.input_type(0).dtype;
  std::string_view wanted =
      dtype == BP_DTYPE_FLOAT || dtype == BP_DTYPE_DOUBLE ? "imputed_value_floats" : "imputed_value_int64s";
  if (node.floats(wanted).empty() && node.ints(wanted).empty())
    return no(BP_REASON_ATTRIBUTE, std::string(wanted) + " is empty; it must contain the replacements");
  return yes();
}

std::unique_ptr<Kernel> create_imputer(const Node& node) {
  return dispatch<Features>(node.input_type(0).dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    Replacement<T> with;
    if constexpr (std::is_floating_point_v<T>) {
      with.old = node.attr("replaced_value_float", 0.0f);
      for (float value : node.floats("imputed_value_floats")) with.values.push_back(value);
    } else {
      with.old = static_cast<T>(node.attr("replaced_value_int64", int64_t{0}));
      for (int64_t value : node.ints("imputed_value_int64s")) with.values.push_back(static_cast<T>(value));
    }
    return make_kernel([with](Tensors inputs) -> Plan {
      auto table = ml::table_of(inputs[0].shape);
      if (!table) return fail(ml::no_table(inputs[0].shape));
      if (with.values.size() != 1 && with.values.size() != static_cast<size_t>(table->columns)) {
        return fail(std::to_string(with.values.size()) + " imputed values do not fit " +
                    std::to_string(table->columns) + " columns; there must be one, or one per column");
      }
      return make_plan({inputs[0].shape},
                       [with, table](Tensors in, Tensors out) { impute(with, table->columns, in, out); });
    });
  });
}

// ---- Normalizer

enum class Norm { kMax, kL1, kL2 };

double divisor(Norm norm, std::span<const double> row) {
  double result = norm == Norm::kMax ? row[0] : 0;
  for (double x : row) {
    if (norm == Norm::kMax) result = std::max(result, x);
    if (norm == Norm::kL1) result += std::abs(x);
    if (norm == Norm::kL2) result += x * x;
  }
  return norm == Norm::kL2 ? std::sqrt(result) : result;
}

Verdict supports_normalizer(const Node& node) {
  if (Verdict verdict = supports_features(node); !verdict) return verdict;
  return attribute_in(node, "norm", "MAX", {"MAX", "L1", "L2"});
}

std::unique_ptr<Kernel> create_normalizer(const Node& node) {
  std::string name = node.attr("norm", "MAX");
  Norm norm = name == "MAX" ? Norm::kMax : name == "L1" ? Norm::kL1 : Norm::kL2;
  return make_kernel([norm](Tensors inputs) -> Plan {
    auto table = ml::table_of(inputs[0].shape);
    if (!table) return fail(ml::no_table(inputs[0].shape));
    return make_plan({inputs[0].shape}, [norm, table](Tensors in, Tensors out) {
      if (table->columns == 0) return;
      parallel(table->rows, std::max<int64_t>(1, kCheapGrain / table->columns), [&](int64_t begin, int64_t end) {
        std::vector<double> row(static_cast<size_t>(table->columns));
        for (int64_t r = begin; r < end; ++r) {
          ml::read_numbers(in[0], r * table->columns, table->columns, row.data());
          double by = divisor(norm, row);
          float* y = out[0].as<float>() + r * table->columns;
          for (double x : row) *y++ = static_cast<float>(by == 0 ? x : x / by);
        }
      });
    });
  });
}

// ---- Scaler

std::unique_ptr<Kernel> create_scaler(const Node& node) {
  return make_kernel([offset = node.floats("offset"), scale = node.floats("scale")](Tensors inputs) -> Plan {
    auto table = ml::table_of(inputs[0].shape);
    if (!table) return fail(ml::no_table(inputs[0].shape));
    for (const auto* list : {&offset, &scale}) {
      if (list->size() > 1 && list->size() != static_cast<size_t>(table->columns)) {
        return fail(std::string(list == &offset ? "offset" : "scale") + " has " + std::to_string(list->size()) +
                    " entries for " + std::to_string(table->columns) + " columns; it must have one, or one per column");
      }
    }
    return make_plan({inputs[0].shape}, [offset, scale, table](Tensors in, Tensors out) {
      auto entry = [&](const std::vector<float>& list, int64_t column, float none) {
        return list.empty() ? none : list[list.size() == 1 ? 0 : static_cast<size_t>(column)];
      };
      int64_t columns = table->columns;
      if (columns == 0) return;
      parallel(table->rows, std::max<int64_t>(1, kCheapGrain / columns), [&](int64_t begin, int64_t end) {
        std::vector<double> row(static_cast<size_t>(columns));
        for (int64_t r = begin; r < end; ++r) {
          ml::read_numbers(in[0], r * columns, columns, row.data());
          float* y = out[0].as<float>() + r * columns;
          for (int64_t c = 0; c < columns; ++c) {
            double x = row[static_cast<size_t>(c)];
            y[c] = static_cast<float>((x - entry(offset, c, 0)) * entry(scale, c, 1));
          }
        }
      });
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> scale_rows() {
  static constexpr Row kRows[] = {
      {kDomain, "Binarizer", 1, supports_features, create_binarizer},
      {kDomain, "Imputer", 1, supports_imputer, create_imputer},
      {kDomain, "Normalizer", 1, supports_normalizer, create_normalizer},
      {kDomain, "Scaler", 1, supports_features, create_scaler},
  };
  return kRows;
}

}  // namespace backplane::cpu
