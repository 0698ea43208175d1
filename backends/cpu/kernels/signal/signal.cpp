// SPDX-License-Identifier: Apache-2.0
// Signal processing: windows, DFT, STFT, MelWeightMatrix.
#include <cmath>
#include <numbers>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/signal/spectrum.h"

namespace backplane::cpu {
namespace {

using Complex = std::complex<double>;

// ---- Windows: sums of cosines --------------------------------------------------------------------------------------

Verdict supports_window(const Node& node) {
  const int64_t dtype = node.attr("output_datatype", int64_t{BP_DTYPE_FLOAT});
  if (Verdict verdict = returns_type(node, "output_datatype", dtype, set_of(Numbers{})); !verdict) return verdict;
  return accepts(node, 1, {kIndexTypes});
}

struct Cosines {
  double a0, a1, a2;
};
constexpr Cosines kHann{0.5, 0.5, 0}, kHamming{25.0 / 46, 21.0 / 46, 0}, kBlackman{0.42, 0.5, 0.08};

template <const Cosines& kCosines>
std::unique_ptr<Kernel> create_window(const Node& node) {
  const auto dtype = static_cast<bp_dtype_t>(node.attr("output_datatype", int64_t{BP_DTYPE_FLOAT}));
  return make_kernel([dtype, periodic = node.attr("periodic", int64_t{1}) != 0](Tensors inputs) -> Plan {
    if (inputs[0].shape.elements() != 1)
      return fail("size has shape " + to_string(inputs[0].shape) + "; it must have one element");
    if (!known(inputs[0])) return deferred();
    const int64_t n = integers(inputs[0])[0];
    if (n < 0) return fail("size is " + std::to_string(n) + "; it must not be negative");
    return make_plan({{n}}, [=](Tensors, Tensors out) {
      const auto period = static_cast<double>(periodic ? n : std::max<int64_t>(1, n - 1));
      dispatch<Numbers>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        parallel(n, kMathGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const double x = 2 * std::numbers::pi * static_cast<double>(i) / period;
            out[0].as<T>()[i] = static_cast<T>(
                static_cast<compute_t<T>>(kCosines.a0 - kCosines.a1 * std::cos(x) + kCosines.a2 * std::cos(2 * x)));
          }
        });
      });
    });
  });
}

// ---- DFT -----------------------------------------------------------------------------------------------------------

template <class T>
void write(T* target, double value) {
  *target = static_cast<T>(static_cast<compute_t<T>>(value));
}

struct Dft {
  bool inverse, onesided;
};

// Transforms [outer, from, inner, parts] to [outer, to, inner, result parts], where parts is 1 (real) or 2 (complex).
// The transform has `length` points.
Plan plan_dft(const PlanContext& context, Tensors inputs, Dft dft, int64_t axis_attribute) {
  const Shape& from = inputs[0].shape;
  const int rank = from.rank();
  if (rank < 2 || from[rank - 1] < 1 || from[rank - 1] > 2)
    return fail("the input has shape " + to_string(from) + "; its last extent must be 1 (real) or 2 (complex)");
  const int axis = axis_of(axis_attribute, rank);
  if (axis < 0) return bad_axis(axis_attribute, rank);
  if (axis == rank - 1)
    return fail("axis " + std::to_string(axis_attribute) + " of an input of shape " + to_string(from) +
                " has the real and imaginary parts; it cannot be transformed");
  const bool to_real = dft.inverse && dft.onesided;
  int64_t length = to_real ? 2 * (from[axis] - 1) : from[axis];
  if (const Tensor wanted = at(inputs, 1); wanted.present()) {
    if (!known(wanted)) return deferred();
    if (wanted.shape.elements() != 1)
      return fail("dft_length has shape " + to_string(wanted.shape) + "; it must have one element");
    length = integers(wanted)[0];
  }
  if (length < 1 || length > INT32_MAX)
    return fail("the transform has " + std::to_string(length) + " points; it must have 1 to 2^31 - 1");
  Shape to = from;
  to[axis] = dft.onesided && !dft.inverse ? length / 2 + 1 : length;
  to[rank - 1] = to_real ? 1 : 2;
  // Returns early if the result is too large, which is an error, or empty.
  if (Plan plain = make_plan({to}, [](Tensors, Tensors) {}); !plain.step || to.elements() == 0) return plain;
  const int64_t inner = from.elements(axis + 1, rank - 1), lines = from.elements(0, axis) * inner;
  const int64_t parts = from[rank - 1], points = from[axis], results = to[axis], result_parts = to[rank - 1];
  using Kind = Spectrum::Kind;
  const Kind kind = to_real                     ? Kind::kInverseToReal
                    : dft.inverse               ? Kind::kInverse
                    : parts == 1 && length >= 2 ? Kind::kReal
                                                : Kind::kComplex;
  Lazy<Spectrum> spectrum = Spectrum::planned(context, kind, length, lines);
  const int64_t scratch = Spectrum::scratch_bytes(kind, length, lines, context.threads);
  return make_plan(
      {to},
      [=, spectrum = std::move(spectrum)](Tensors in, Tensors out, void* memory) {
        const double scale = dft.inverse ? 1 / static_cast<double>(length) : 1;
        dispatch<Floats>(in[0].dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const auto load = [&](int64_t line) {
            return [=, x = in[0].as<T>() + (line / inner * points * inner + line % inner) * parts](int64_t i) {
              if (i >= points) return Complex(0);
              const T* p = x + i * inner * parts;
              return Complex(static_cast<double>(p[0]), parts == 2 ? static_cast<double>(p[1]) : 0);
            };
          };
          const auto store = [&](int64_t line) {
            T* y = out[0].as<T>() + (line / inner * results * inner + line % inner) * result_parts;
            return [=](int64_t i, double re, double im) {
              const auto put = [&](int64_t bin, double imaginary) {
                if (bin >= results) return;
                T* p = y + bin * inner * result_parts;
                write(p, re * scale);
                if (result_parts == 2) write(p + 1, imaginary * scale);
              };
              put(i, im);
              if (kind == Kind::kReal && i > 0 && 2 * i < length) put(length - i, -im);
            };
          };
          spectrum.get()->run(load, store, memory);
        });
      },
      {.scratch_bytes = scratch});
}

Verdict supports_dft_17(const Node& node) {
  return accepts(node, 1, {kFloatTypes, kIndexTypes});
}
Verdict supports_dft_20(const Node& node) {
  return accepts(node, 1, {kFloatTypes, kIndexTypes, just(BP_DTYPE_INT64)});
}

Dft dft_of(const Node& node) {
  return {node.attr("inverse", int64_t{0}) != 0, node.attr("onesided", int64_t{0}) != 0};
}

std::unique_ptr<Kernel> create_dft_17(const Node& node) {
  return make_kernel([dft = dft_of(node), axis = node.attr("axis", int64_t{1})](
                         const PlanContext& context, Tensors inputs) { return plan_dft(context, inputs, dft, axis); });
}

std::unique_ptr<Kernel> create_dft_20(const Node& node) {
  return make_kernel([dft = dft_of(node)](const PlanContext& context, Tensors inputs) -> Plan {
    const Tensor axis = at(inputs, 2);
    if (axis.present() && !known(axis)) return deferred();
    if (axis.present() && axis.shape.elements() != 1)
      return fail("axis has shape " + to_string(axis.shape) + "; it must have one element");
    return plan_dft(context, inputs, dft, axis.present() ? *axis.as<int64_t>() : -2);
  });
}

// ---- STFT: [batch, samples, parts] to [batch, frames, bins, 2] -----------------------------------------------------

Verdict supports_stft(const Node& node) {
  if (Verdict verdict = accepts(node, 2, {kFloatTypes, kIndexTypes, kFloatTypes, kIndexTypes}); !verdict)
    return verdict;
  return node.has_input(2) ? same_type(node, 0, 2) : yes();
}

std::unique_ptr<Kernel> create_stft(const Node& node) {
  return make_kernel([onesided = node.attr("onesided", int64_t{1}) != 0](const PlanContext& context,
                                                                         Tensors inputs) -> Plan {
    const Shape& from = inputs[0].shape;
    const Tensor window = at(inputs, 2), wanted = at(inputs, 3);
    if (!known(inputs[1]) || (wanted.present() && !known(wanted))) return deferred();
    if ((from.rank() != 2 && from.rank() != 3) || (from.rank() == 3 && (from[2] < 1 || from[2] > 2)))
      return fail("the signal has shape " + to_string(from) +
                  "; it must be [batch, samples], or [batch, samples, n] with n = 1 (real) or 2 (complex)");
    if (inputs[1].shape.elements() != 1)
      return fail("frame_step has shape " + to_string(inputs[1].shape) + "; it must have one element");
    if (wanted.present() && wanted.shape.elements() != 1)
      return fail("frame_length has shape " + to_string(wanted.shape) + "; it must have one element");
    if (!window.present() && !wanted.present())
      return fail("window and frame_length are missing; one of them is needed");
    const int64_t step = integers(inputs[1])[0],
                  length = wanted.present() ? integers(wanted)[0] : window.shape.elements();
    if (step < 1) return fail("frame_step is " + std::to_string(step) + "; it must be positive");
    if (length < 1 || length > from[1])
      return fail("frames of " + std::to_string(length) + " samples do not fit a signal of " + std::to_string(from[1]));
    if (window.present() && !(window.shape == Shape{length}))
      return fail("window of shape " + to_string(window.shape) + " does not fit frames of " + std::to_string(length) +
                  " samples");
    const int64_t frames = (from[1] - length) / step + 1, bins = onesided ? length / 2 + 1 : length;
    const int64_t samples = from[1], parts = from.rank() == 3 ? from[2] : 1, batch = from[0];
    const Shape to{batch, frames, bins, 2};
    // Returns early if the result is too large, which is an error, or empty.
    if (Plan plain = make_plan({to}, [](Tensors, Tensors) {}); !plain.step || to.elements() == 0) return plain;
    const bool real = parts == 1 && length >= 2;
    const Spectrum::Kind kind = real ? Spectrum::Kind::kReal : Spectrum::Kind::kComplex;
    Lazy<Spectrum> spectrum = Spectrum::planned(context, kind, length, batch * frames);
    const int64_t scratch = Spectrum::scratch_bytes(kind, length, batch * frames, context.threads);
    return make_plan({to},
                     [=, spectrum = std::move(spectrum)](Tensors in, Tensors out, void* memory) {
                       dispatch<Floats>(in[0].dtype, [&](auto tag) {
                         using T = typename decltype(tag)::type;
                         const T *x = in[0].as<T>(), *weights = at(in, 2).template as<T>();
                         const auto load = [&](int64_t frame) {
                           return
                               [=, first = x + (frame / frames * samples + frame % frames * step) * parts](int64_t i) {
                                 const T* p = first + i * parts;
                                 const double weight = weights == nullptr ? 1.0 : static_cast<double>(weights[i]);
                                 return Complex(static_cast<double>(p[0]) * weight,
                                                parts == 2 ? static_cast<double>(p[1]) * weight : 0.0);
                               };
                         };
                         const auto store = [&](int64_t frame) {
                           return [=, y = out[0].as<T>() + frame * bins * 2](int64_t i, double re, double im) {
                             const auto put = [&](int64_t bin, double imaginary) {
                               if (bin >= bins) return;
                               write(y + bin * 2, re);
                               write(y + bin * 2 + 1, imaginary);
                             };
                             put(i, im);
                             if (real && i > 0 && 2 * i < length) put(length - i, -im);
                           };
                         };
                         spectrum.get()->run(load, store, memory);
                       });
                     },
                     {.scratch_bytes = scratch});
  });
}

// ---- MelWeightMatrix: [spectrogram bins, mel bins]; each column is a triangle --------------------------------------

Verdict supports_mel(const Node& node) {
  const int64_t dtype = node.attr("output_datatype", int64_t{BP_DTYPE_FLOAT});
  if (Verdict verdict = returns_type(node, "output_datatype", dtype, set_of(Numbers{})); !verdict) return verdict;
  return accepts(node, 5, {kIndexTypes, kIndexTypes, kIndexTypes, kFloatTypes, kFloatTypes});
}

std::unique_ptr<Kernel> create_mel(const Node& node) {
  return make_kernel([dtype = static_cast<bp_dtype_t>(node.attr("output_datatype", int64_t{BP_DTYPE_FLOAT}))](
                         Tensors inputs) -> Plan {
    double number[5];  // mel bins, DFT length, sample rate, lower and upper edge
    for (size_t i = 0; i < 5; ++i) {
      if (inputs[i].shape.elements() != 1)
        return fail("input " + std::to_string(i) + " has shape " + to_string(inputs[i].shape) +
                    "; it must have one element");
      if (!known(inputs[i])) return deferred();
      number[i] = scalar(inputs[i]);
    }
    const double mel_bins = number[0], dft_length = number[1], sample_rate = number[2], lower = number[3],
                 upper = number[4];
    if (!(mel_bins >= 1 && mel_bins < 0x1p24 && dft_length >= 1 && dft_length < 0x1p24 && sample_rate >= 1 &&
          lower >= 0 && upper >= lower && upper <= sample_rate / 2))
      return fail("num_mel_bins, dft_length, sample_rate, lower_edge_hertz and upper_edge_hertz are " +
                  std::to_string(mel_bins) + ", " + std::to_string(dft_length) + ", " + std::to_string(sample_rate) +
                  ", " + std::to_string(lower) + " and " + std::to_string(upper) +
                  "; the first two must be 1 to 2^24 - 1, the third positive, and the edges in ascending order within "
                  "0 to sample_rate / 2");
    const auto columns = static_cast<int64_t>(mel_bins), rows = static_cast<int64_t>(dft_length) / 2 + 1;
    const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
    const auto edge = [=](int64_t i) {  // the row at which the triangle before column i has its peak
      const double at = mel(lower) + (mel(upper) - mel(lower)) / (mel_bins + 2) * static_cast<double>(i);
      const double hertz = 700 * (std::pow(10, at / 2595) - 1);
      return std::clamp<int64_t>(static_cast<int64_t>(std::floor((dft_length + 1) * hertz / sample_rate)), 0, rows - 1);
    };
    return make_plan({{rows, columns}}, [=](Tensors, Tensors out) {
      dispatch<Numbers>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        parallel(columns, 1 + kCheapGrain / rows, [&](int64_t begin, int64_t end) {
          for (int64_t column = begin; column < end; ++column) {
            const int64_t left = edge(column), peak = edge(column + 1), right = edge(column + 2);
            for (int64_t row = 0; row < rows; ++row) {
              double value = 0;
              if (row >= peak && row < right)
                value = static_cast<double>(right - row) / static_cast<double>(right - peak);
              else if (row == peak)
                value = 1;
              else if (row >= left && row < peak)
                value = static_cast<double>(row - left) / static_cast<double>(peak - left);
              write(out[0].as<T>() + row * columns + column, value);
            }
          }
        });
      });
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> signal_rows() {
  static constexpr Row kRows[] = {
      {"", "HannWindow", 17, supports_window, create_window<kHann>},
      {"", "HammingWindow", 17, supports_window, create_window<kHamming>},
      {"", "BlackmanWindow", 17, supports_window, create_window<kBlackman>},
      Row{"", "DFT", 17, supports_dft_17, create_dft_17}.in_fp32(),
      Row{"", "DFT", 20, supports_dft_20, create_dft_20}.in_fp32(),
      Row{"", "STFT", 17, supports_stft, create_stft}.in_fp32(),
      {"", "MelWeightMatrix", 17, supports_mel, create_mel},
  };
  return kRows;
}

}  // namespace backplane::cpu
