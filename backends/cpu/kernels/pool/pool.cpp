// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, LpPool and their global forms.
#include <array>
#include <cmath>
#include <limits>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/common/window.h"
#include "kernels/pool/blocked_pool.h"
#include "kernels/pool/pool_nchw.h"
#include "runtime/implementations.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

using PoolTypes = TypeList<float, double, Half, BFloat16, int8_t, uint8_t>;

// The part of a window inside the input, and how many of the window's positions are inside the padded input.
struct Cell {
  Spatial start;  // the first input position
  Spatial count;  // positions along each dimension
  double padded_positions = 1;
};

// Calls f(output element, cell) for all elements of a plane. Computes the reaches along each dimension only once.
template <class F>
void each_cell(const Window& w, const F& f) {
  const std::array all{reaches(w, 0), reaches(w, 1), reaches(w, 2)};
  Cell cell;
  const auto position = [&](size_t d, int64_t o) {
    const Reach& reach = all[d][static_cast<size_t>(o)];
    cell.start[d] = reach.first;
    cell.count[d] = reach.count;
    return reach.padded_count;
  };
  int64_t o = 0;
  Pace pace;
  for (int64_t z = 0; z < w.out[0]; ++z) {
    const int64_t deep = position(0, z);
    for (int64_t y = 0; y < w.out[1]; ++y) {
      const int64_t high = position(1, y);
      for (int64_t x = 0; x < w.out[2]; ++x) {
        cell.padded_positions = static_cast<double>(deep * high) * static_cast<double>(position(2, x));
        pace.spend(cell.count[0] * cell.count[1] * cell.count[2]);
        f(o++, cell);
      }
    }
  }
}

template <class F>
void each_position(const Window& w, const Cell& cell, const F& f) {
  for (int64_t z = 0; z < cell.count[0]; ++z) {
    int64_t iz = cell.start[0] + z * w.dilation[0];
    for (int64_t y = 0; y < cell.count[1]; ++y) {
      int64_t row = (iz * w.in[1] + cell.start[1] + y * w.dilation[1]) * w.in[2] + cell.start[2];
      for (int64_t x = 0; x < cell.count[2]; ++x) f(row + x * w.dilation[2]);
    }
  }
}

// Calls plane(index of the first input element, index of the first output element) for each channel of each image, in
// parallel.
template <class F>
void each_plane(const Window& w, int64_t planes, const F& plane) {
  const double work = 1 + static_cast<double>(w.out_size()) * w.reads();
  parallel(planes, 1 + static_cast<int64_t>(kCheapGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) plane(p * w.in_size(), p * w.out_size());
  });
}

template <class T>
constexpr T lowest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::lowest();
  else
    return static_cast<T>(-std::numeric_limits<compute_t<T>>::infinity());
}

template <class T>
void max_pool(const Window& w, int64_t planes, bool column_major, Tensors in, Tensors out) {
  const T* x = in[0].as<T>();
  T* y = out[0].as<T>();
  int64_t* indices = at(out, 1).present() ? out[1].as<int64_t>() : nullptr;
  each_plane(w, planes, [&](int64_t x0, int64_t y0) {
    each_cell(w, [&](int64_t o, const Cell& cell) {
      T best = lowest<T>();
      int64_t best_position = -1;
      each_position(w, cell, [&](int64_t i) {
        if (best_position >= 0 && !(static_cast<compute_t<T>>(x[x0 + i]) > static_cast<compute_t<T>>(best))) return;
        best = x[x0 + i];
        best_position = i;
      });
      y[y0 + o] = best;
      if (indices == nullptr) return;
      int64_t position = std::max<int64_t>(best_position, 0);
      if (column_major) {
        int64_t iz = position / (w.in[1] * w.in[2]), iy = position / w.in[2] % w.in[1], ix = position % w.in[2];
        position = iz + w.in[0] * (iy + w.in[1] * ix);
      }
      indices[y0 + o] = x0 + position;
    });
  });
}

template <class T>
void average_pool(const Window& w, int64_t planes, bool count_padding, Tensors in, Tensors out) {
  using C = compute_t<T>;
  each_plane(w, planes, [&, x = in[0].as<T>(), y = out[0].as<T>()](int64_t x0, int64_t y0) {
    each_cell(w, [&](int64_t o, const Cell& cell) {
      C sum = 0;
      each_position(w, cell, [&](int64_t i) { sum += static_cast<C>(x[x0 + i]); });
      const auto inside = static_cast<double>(cell.count[0] * cell.count[1] * cell.count[2]);
      y[y0 + o] = static_cast<T>(sum / static_cast<C>(std::max(1.0, count_padding ? cell.padded_positions : inside)));
    });
  });
}

template <class T>
void lp_pool(const Window& w, int64_t planes, int64_t p, Tensors in, Tensors out) {
  using C = compute_t<T>;
  each_plane(w, planes, [&, x = in[0].as<T>(), y = out[0].as<T>()](int64_t x0, int64_t y0) {
    each_cell(w, [&](int64_t o, const Cell& cell) {
      C sum = 0;
      each_position(w, cell, [&](int64_t i) {
        C v = std::abs(static_cast<C>(x[x0 + i]));
        sum += p == 2 ? v * v : p == 1 ? v : std::pow(v, static_cast<C>(p));
      });
      y[y0 + o] = static_cast<T>(p == 2 ? std::sqrt(sum) : p == 1 ? sum : std::pow(sum, 1 / static_cast<C>(p)));
    });
  });
}

enum class Pool { kMax, kAverage, kLp };

// Input to the implementations in kPools: a pool for one set of extents.
struct PoolProblem {
  int64_t parameter;  // storage_order (MaxPool), count_include_pad (AveragePool) or p (LpPool)
  bool has_indices;
  Window window;
  Tensors inputs;
  Shape shape;  // result shape
};

template <Pool kPool>
BlockedPool plain(const PoolProblem& p) {
  return {kPool == Pool::kMax, p.parameter != 0};
}

template <Pool kPool>
const char* refuse_plain(const PoolProblem& p) {
  if (kPool == Pool::kLp) return "it is an LpPool";
  return kPool == Pool::kMax && p.has_indices ? "it also returns indices" : nullptr;
}

template <Pool kPool>
const char* refuse_blocked(const PlanContext&, PoolProblem& p) {
  if (const char* why = refuse_plain<kPool>(p)) return why;
  return p.inputs[0].format != Format::kBlocked ? "its input is not blocked" : nullptr;
}

template <Pool kPool>
const char* refuse_dense(const PlanContext&, PoolProblem& p) {
  if (const char* why = refuse_plain<kPool>(p)) return why;
  if (p.inputs[0].dtype != BP_DTYPE_FLOAT) return "its input is not in fp32";
  if (p.shape.elements() == 0) return "its result is empty";
  if (p.window.in_size() == 0) return "its input is empty";
  return has_short_rows(p.window) ? nullptr : "its rows are too long to be copied";
}

template <Pool kPool>
Plan plan_blocked(const PlanContext&, PoolProblem& p) {
  return plan_blocked_pool(plain<kPool>(p), p.window, p.inputs[0].shape, p.shape);
}

template <Pool kPool>
Plan plan_dense(const PlanContext&, PoolProblem& p) {
  return plan_pool_nchw(plain<kPool>(p), p.window, p.inputs[0].shape, p.shape);
}

template <Pool kPool>
Plan plan_direct(const PlanContext&, PoolProblem& p) {
  const int64_t planes = p.inputs[0].shape[0] * p.inputs[0].shape[1];
  return make_plan({p.shape, p.shape}, [planes, w = p.window, parameter = p.parameter](Tensors in, Tensors out) {
    dispatch<PoolTypes>(in[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (kPool == Pool::kMax)
        max_pool<T>(w, planes, parameter != 0, in, out);
      else if constexpr (!kIsFloating<T>)
        return;
      else if constexpr (kPool == Pool::kAverage)
        average_pool<T>(w, planes, parameter != 0, in, out);
      else
        lp_pool<T>(w, planes, parameter, in, out);
    });
  });
}

template <Pool kPool>
constexpr std::array kPools = {
    Implementation<PoolProblem>{"blocked", refuse_blocked<kPool>, plan_blocked<kPool>},
    Implementation<PoolProblem>{"dense", refuse_dense<kPool>, plan_dense<kPool>},
    Implementation<PoolProblem>{"direct", nullptr, plan_direct<kPool>},
};
ImplementationNames implementations() {
  return names_of("pool", kPools<Pool::kMax>);
}

template <Pool kPool>
std::unique_ptr<Kernel> create_with(const std::optional<WindowAttributes>& attributes, int64_t parameter,
                                    bool has_indices) {
  return make_kernel([=](const PlanContext& context, Tensors inputs) -> Plan {
    const Shape& x = inputs[0].shape;
    if (x.rank() < 2) return fail("the input " + to_string(x) + " has no channel dimension");
    Window w;
    Shape shape;
    if (attributes) {
      std::string error;
      std::optional<Window> made = make_window(*attributes, x, attributes->kernel, &error);
      if (!made) return fail(error);
      w = *made;
      shape = w.output_shape(x[0], x[1]);
    } else {  // global: the window is the whole plane, in any number of dimensions
      w.in[2] = w.kernel[2] = x.elements(2, x.rank());
      shape = Shape{x[0], x[1]};
      for (int d = 2; d < x.rank(); ++d) shape.push_back(1);
    }
    PoolProblem problem{parameter, has_indices, w, inputs, shape};
    return plan_best(context, "pool", kPools<kPool>, problem);
  });
}

template <Pool kPool>
Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 1, {kPool == Pool::kMax ? set_of(PoolTypes{}) : kFloatTypes}); !v) return v;
  if (kPool == Pool::kLp && node.attr("p", int64_t{2}) < 1)
    return no(BP_REASON_ATTRIBUTE, "p is " + std::to_string(node.attr("p", int64_t{2})) + "; it must be positive");
  if (std::string_view(node.op_type()).starts_with("Global")) return yes();
  if (node.ints("kernel_shape").empty()) return no(BP_REASON_ATTRIBUTE, "kernel_shape is missing");
  return check_window(node);
}

template <Pool kPool>
std::unique_ptr<Kernel> create(const Node& node) {
  constexpr const char* kName = kPool == Pool::kMax       ? "storage_order"
                                : kPool == Pool::kAverage ? "count_include_pad"
                                                          : "p";
  return create_with<kPool>(WindowAttributes(node), node.attr(kName, int64_t{kPool == Pool::kLp ? 2 : 0}),
                            node.has_output(1));
}

template <Pool kPool>
std::unique_ptr<Kernel> create_global(const Node& node) {
  return create_with<kPool>(std::nullopt, kPool == Pool::kLp ? node.attr("p", int64_t{2}) : 0, node.has_output(1));
}

}  // namespace

[[gnu::cold]] std::span<const Row> pool_rows() {
  static constexpr Row kRows[] = {
      Row{"", "MaxPool", 1, supports<Pool::kMax>, create<Pool::kMax>}.in_fp32().choosing(implementations),
      Row{"", "AveragePool", 1, supports<Pool::kAverage>, create<Pool::kAverage>}.in_fp32().choosing(implementations),
      Row{"", "LpPool", 2, supports<Pool::kLp>, create<Pool::kLp>}.in_fp32().choosing(implementations),
      Row{"", "GlobalMaxPool", 1, supports<Pool::kMax>, create_global<Pool::kMax>}.in_fp32().choosing(implementations),
      Row{"", "GlobalAveragePool", 1, supports<Pool::kAverage>, create_global<Pool::kAverage>}.in_fp32().choosing(
          implementations),
      Row{"", "GlobalLpPool", 2, supports<Pool::kLp>, create_global<Pool::kLp>}.in_fp32().choosing(implementations),
  };
  return kRows;
}

}  // namespace backplane::cpu
