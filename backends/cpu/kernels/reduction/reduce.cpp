// SPDX-License-Identifier: Apache-2.0
// ReduceSum and the nine other reductions. Each is a class with an accumulator type and functions to start, add an
// element, merge two accumulators and finish. Sums and products of floats are computed in double for precision.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/common/function_kernel.h"
#include "kernels/common/integer_of.h"
#include "kernels/common/odometer.h"
#include "kernels/common/support.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

// ---- The operators -------------------------------------------------------------------------------------------------

// Integers are summed as unsigned numbers, which wrap on overflow.
template <class T>
using total_t = std::conditional_t<kIsFloating<T>, double, uint64_t>;

// Converts an accumulated total to double. A total of signed integers may be beyond T.
template <class T>
double wide(total_t<T> total) {
  if constexpr (!kIsFloating<T> && std::is_signed_v<T>)
    return static_cast<double>(static_cast<int64_t>(total));
  else
    return static_cast<double>(total);
}

// Converts an accumulated total: for integers to T, while floats stay double.
template <class T>
auto number_of(total_t<T> total) {
  if constexpr (kIsFloating<T>)
    return total;
  else
    return static_cast<T>(total);
}

// Converts a result to T. The logarithm of an empty or a negative sum is -infinity or NaN, which integer types lack: it
// becomes the lowest integer.
template <class T, class Value>
T result_of(Value value) {
  if constexpr (!kIsFloating<T> && std::is_floating_point_v<Value>) {
    return std::isnan(value) ? std::numeric_limits<T>::lowest() : integer_of<T>(value);
  } else {
    return static_cast<T>(static_cast<compute_t<T>>(value));
  }
}

// kWide: whether kEndMap takes the total as double, before it is converted to T.
template <class T, auto kMap, auto kEndMap, bool kWide = false>
struct Total {
  using Acc = total_t<T>;
  static Acc start() { return 0; }
  static void take(Acc& acc, T x) { acc += kMap(static_cast<Acc>(static_cast<compute_t<T>>(x))); }
  static void merge(Acc& acc, Acc other) { acc += other; }
  static T end(Acc acc, int64_t n) {
    if constexpr (kWide)
      return result_of<T>(kEndMap(wide<T>(acc), n));
    else
      return result_of<T>(kEndMap(number_of<T>(acc), n));
  }
};

constexpr auto kSame = [](auto x) { return x; };
constexpr auto kSquare = [](auto x) { return x * x; };
constexpr auto kMagnitude = [](auto x) {
  if constexpr (std::is_floating_point_v<decltype(x)>)
    return std::fabs(x);
  else
    return static_cast<int64_t>(x) < 0 ? 0 - x : x;
};
constexpr auto kAsIs = [](auto total, int64_t) { return total; };
constexpr auto kMean = [](auto total, int64_t n) {
  if constexpr (std::is_floating_point_v<decltype(total)>)
    return total / static_cast<double>(n);
  else
    return n == 0 ? decltype(total)(0) : static_cast<decltype(total)>(total / static_cast<decltype(total)>(n));
};
constexpr auto kRoot = [](double total, int64_t) { return std::sqrt(total); };
constexpr auto kLogarithm = [](double total, int64_t) { return std::log(total); };

template <class T>
using Sum = Total<T, kSame, kAsIs>;
template <class T>
using Mean = Total<T, kSame, kMean>;
template <class T>
using L1 = Total<T, kMagnitude, kAsIs>;
template <class T>
using L2 = Total<T, kSquare, kRoot, true>;
template <class T>
using SumSquare = Total<T, kSquare, kAsIs>;
template <class T>
using LogSum = Total<T, kSame, kLogarithm, true>;

template <class T>
struct Product {
  using Acc = total_t<T>;
  static Acc start() { return 1; }
  static void take(Acc& acc, T x) { acc *= static_cast<Acc>(static_cast<compute_t<T>>(x)); }
  static void merge(Acc& acc, Acc other) { acc *= other; }
  static T end(Acc acc, int64_t) { return static_cast<T>(static_cast<compute_t<T>>(number_of<T>(acc))); }
};

// Keeps the largest element so far, and the sum of exponentials relative to it, so that nothing overflows.
template <class T>
struct LogSumExp {
  struct Acc {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  };
  static Acc start() { return {}; }
  static void take(Acc& acc, T x) { merge(acc, {static_cast<double>(static_cast<compute_t<T>>(x)), 1}); }
  static void merge(Acc& acc, Acc other) {
    if (other.largest > acc.largest) std::swap(acc, other);
    if (other.largest == acc.largest)
      acc.sum += other.sum;
    else
      acc.sum += other.sum * std::exp(other.largest - acc.largest);  // also reached for NaN, which propagates
  }
  static T end(Acc acc, int64_t) { return result_of<T>(acc.sum == 0 ? acc.largest : acc.largest + std::log(acc.sum)); }
};

// The largest or the smallest element. NaN takes precedence over all numbers.
template <class T, bool kLargest>
struct Extreme {
  using Acc = compute_t<T>;
  static Acc start() {
    using Limits = std::numeric_limits<Acc>;
    if constexpr (std::is_floating_point_v<Acc>) return kLargest ? -Limits::infinity() : Limits::infinity();
    return kLargest ? Limits::lowest() : Limits::max();
  }
  static void take(Acc& acc, T x) { merge(acc, static_cast<Acc>(x)); }
  static void merge(Acc& acc, Acc other) {
    if (!(acc != acc) && (other != other || (kLargest ? other > acc : other < acc))) acc = other;
  }
  static T end(Acc acc, int64_t) { return static_cast<T>(acc); }
};
template <class T>
using Max = Extreme<T, true>;
template <class T>
using Min = Extreme<T, false>;

// ---- The loops -----------------------------------------------------------------------------------------------------

// Merges adjacent dimensions that are all kept or all reduced. The innermost one, which is contiguous, is handled
// separately.
struct Walk {
  Dimensions kept, reduced;
  int64_t inner = 1;
  bool inner_reduced = true;
  int64_t count = 1;  // number of elements per result

  Walk(const Shape& shape, uint64_t axes) {
    const Shape strides = strides_of(shape);
    for (int d = 0; d < shape.rank(); ++d) {
      const bool reduce = axes >> d & 1;
      if (reduce) count *= shape[d];
      int64_t extent = shape[d];
      while (d + 1 < shape.rank() && (axes >> (d + 1) & 1) == reduce) {
        ++d;
        extent *= shape[d];
        if (reduce) count *= shape[d];
      }
      if (d + 1 == shape.rank()) {
        inner = extent;
        inner_reduced = reduce;
      } else {
        (reduce ? reduced : kept).add(extent, strides[d]);
      }
    }
    if (count == 0)
      reduced.extents.assign(reduced.extents.size(), 0);  // avoids loops over reduced dimensions without elements
  }
};

template <class T, class Op>
void reduce_rows_of(const Walk& walk, const T* x, T* y) {  // for walks whose innermost dimension is reduced
  constexpr int64_t kLanes = 4;                            // independent accumulators keep the pipeline full
  constexpr int64_t kPart = int64_t{1} << 18;              // elements of a row between two checks for cancellation
  const int64_t outer = walk.reduced.positions();
  parallel(walk.kept.positions(), std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, walk.count)),
           [&](int64_t begin, int64_t end) {
             Pace pace;
             Odometer kept(walk.kept, begin);
             for (int64_t i = begin; i < end; ++i, kept.next()) {
               typename Op::Acc acc[kLanes] = {Op::start(), Op::start(), Op::start(), Op::start()};
               Odometer reduced(walk.reduced);
               for (int64_t r = 0; r < outer; ++r, reduced.next()) {
                 const T* row = x + kept.offset() + reduced.offset();
                 int64_t k = 0;
                 while (k + kLanes <= walk.inner) {
                   const int64_t part = std::min(kPart, walk.inner - k);
                   pace.spend(part);
                   for (const int64_t last = k + part; k + kLanes <= last; k += kLanes)
                     for (int64_t lane = 0; lane < kLanes; ++lane) Op::take(acc[lane], row[k + lane]);
                 }
                 for (; k < walk.inner; ++k) Op::take(acc[0], row[k]);
               }
               for (int64_t lane = 1; lane < kLanes; ++lane) Op::merge(acc[0], acc[lane]);
               y[i] = Op::end(acc[0], walk.count);
             }
           });
}

template <class T, class Op>
void reduce_columns_of(const Walk& walk, const T* x, T* y) {  // for walks whose innermost dimension is kept
  constexpr int64_t kWidth = 128;
  const int64_t strips = (walk.inner + kWidth - 1) / kWidth, outer = walk.reduced.positions();
  parallel(walk.kept.positions() * strips,
           std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, walk.count * kWidth)),
           [&](int64_t begin, int64_t end) {
             Pace pace;
             for (int64_t task = begin; task < end; ++task) {
               const int64_t first = task % strips * kWidth, n = std::min(kWidth, walk.inner - first);
               const Odometer kept(walk.kept, task / strips);
               typename Op::Acc acc[kWidth];
               std::fill_n(acc, n, Op::start());
               Odometer reduced(walk.reduced);
               for (int64_t r = 0; r < outer; ++r, reduced.next()) {
                 pace.spend(n);
                 const T* row = x + kept.offset() + reduced.offset() + first;
                 for (int64_t k = 0; k < n; ++k) Op::take(acc[k], row[k]);
               }
               T* results = y + task / strips * walk.inner + first;
               for (int64_t k = 0; k < n; ++k) results[k] = Op::end(acc[k], walk.count);
             }
           });
}

template <class T, class Op>
void reduce_one(const Walk& walk, const void* x, void* y) {
  if (walk.inner_reduced)
    reduce_rows_of<T, Op>(walk, static_cast<const T*>(x), static_cast<T*>(y));
  else
    reduce_columns_of<T, Op>(walk, static_cast<const T*>(x), static_cast<T*>(y));
}

Plan plan_reduce(Tensors inputs, bool keep, bool noop, void (*reduce)(const Walk& walk, const void* x, void* y)) {
  const Shape shape = inputs[0].shape;
  const Tensor axes_input = at(inputs, 1);
  uint64_t axes = 0;
  if (axes_input.present()) {
    if (!known(axes_input)) return deferred();
    const auto set = axis_set(integers(axes_input), shape.rank());
    if (!set) return fail(axes_error(integers(axes_input), shape.rank()));
    axes = *set;
  }
  if (axes == 0 && !noop) axes = (uint64_t{1} << shape.rank()) - 1;
  Shape to;
  for (int d = 0; d < shape.rank(); ++d) {
    if ((axes >> d & 1) == 0)
      to.push_back(shape[d]);
    else if (keep)
      to.push_back(1);
  }
  return make_plan({to}, [walk = Walk(shape, axes), reduce](Tensors in, Tensors out) {
    if (out[0].shape.elements() != 0) reduce(walk, in[0].data, out[0].data);
  });
}

using SumTypes = TypeList<float, double, Half, BFloat16, int32_t, int64_t, uint32_t, uint64_t>;
using ExtremeTypes =
    TypeList<float, double, Half, BFloat16, int32_t, int64_t, uint32_t, uint64_t, int8_t, uint8_t, Bool>;

template <template <class> class Op, class Types = SumTypes>
constexpr Row reduction(std::string_view op_type, uint32_t since_version = 18) {
  return Row{"", op_type, since_version,
             [](const Node& node) {
               return accepts(node, 1, {set_of(Types{}), just(BP_DTYPE_INT64)});
             },
             [](const Node& node) {
               const bool keep = node.attr("keepdims", int64_t{1}) != 0,
                          noop = node.attr("noop_with_empty_axes", int64_t{0}) != 0;
               const auto reduce = dispatch<Types>(node.input_type(0).dtype, [](auto tag) {
                 using T = typename decltype(tag)::type;
                 return &reduce_one<T, Op<T>>;
               });
               return make_kernel(
                   [keep, noop, reduce](Tensors inputs) -> Plan { return plan_reduce(inputs, keep, noop, reduce); });
             }}
      .in_fp32();
}

}  // namespace

[[gnu::cold]] std::span<const Row> reduce_rows() {
  static constexpr Row kRows[] = {
      reduction<Sum>("ReduceSum", 13),
      reduction<Mean>("ReduceMean"),
      reduction<Max, ExtremeTypes>("ReduceMax"),
      reduction<Min, ExtremeTypes>("ReduceMin"),
      reduction<Product>("ReduceProd"),
      reduction<L1>("ReduceL1"),
      reduction<L2>("ReduceL2"),
      reduction<SumSquare>("ReduceSumSquare"),
      reduction<LogSum>("ReduceLogSum"),
      reduction<LogSumExp>("ReduceLogSumExp"),
  };
  return kRows;
}

}  // namespace backplane::cpu
