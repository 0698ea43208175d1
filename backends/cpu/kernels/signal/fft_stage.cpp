// SPDX-License-Identifier: Apache-2.0
#include "kernels/signal/fft_stage.h"

#include <array>

#include "kernels/simd/lanes.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

// A vector of doubles, and the same type for unaligned memory.
template <int kLanes>
struct DoublesOf {
  typedef double type __attribute__((vector_size(kLanes * sizeof(double))));
  typedef double Unaligned __attribute__((vector_size(kLanes * sizeof(double)), aligned(sizeof(double)), may_alias));
};
template <>
struct DoublesOf<1> {
  using type = double;
  using Unaligned = double;
};

// The cosine and sine of 2π · i / radix for i from 1 to (radix - 1) / 2.
template <int kRadix>
struct Roots;
template <>
struct Roots<3> {
  static constexpr double kCos[] = {-0.5}, kSin[] = {0.86602540378443864676};
};
template <>
struct Roots<5> {
  static constexpr double kCos[] = {0.30901699437494742410, -0.80901699437494742410};
  static constexpr double kSin[] = {0.95105651629515357212, 0.58778525229247312917};
};
template <>
struct Roots<7> {
  static constexpr double kCos[] = {0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624};
  static constexpr double kSin[] = {0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048};
};
template <>
struct Roots<11> {
  static constexpr double kCos[] = {0.84125353283118116886, 0.41541501300188642553, -0.14231483827328514044,
                                    -0.65486073394528506406, -0.95949297361449738989};
  static constexpr double kSin[] = {0.54064081745559758211, 0.90963199535451837141, 0.98982144188093273238,
                                    0.75574957435425828377, 0.28173255684142969771};
};
template <>
struct Roots<13> {
  static constexpr double kCos[] = {0.88545602565320989590,  0.56806474673115580251,  0.12053668025532305335,
                                    -0.35460488704253562597, -0.74851074817110109863, -0.97094181742605202716};
  static constexpr double kSin[] = {0.46472317204376854566, 0.82298386589365639458, 0.99270887409805399280,
                                    0.93501624268541482344, 0.66312265824079520238, 0.23931566428755776715};
};

// Computes the forward transform of kRadix numbers in place.
template <int kRadix, class Number>
[[gnu::always_inline]] inline void transform(Number* re, Number* im) {
  if constexpr (kRadix == 2) {
    const Number r = re[0] - re[1], i = im[0] - im[1];
    re[0] += re[1];
    im[0] += im[1];
    re[1] = r;
    im[1] = i;
  } else if constexpr (kRadix == 4) {
    const Number r0 = re[0] + re[2], i0 = im[0] + im[2], r1 = re[0] - re[2], i1 = im[0] - im[2];
    const Number r2 = re[1] + re[3], i2 = im[1] + im[3], r3 = re[1] - re[3], i3 = im[1] - im[3];
    re[0] = r0 + r2;
    im[0] = i0 + i2;
    re[1] = r1 + i3;
    im[1] = i1 - r3;
    re[2] = r0 - r2;
    im[2] = i0 - i2;
    re[3] = r1 - i3;
    im[3] = i1 + r3;
  } else {
    constexpr int kHalf = (kRadix - 1) / 2;
    Number sum_re[kHalf], sum_im[kHalf], dif_re[kHalf], dif_im[kHalf];
    const Number re0 = re[0], im0 = im[0];
#pragma GCC unroll 6
    for (int j = 0; j < kHalf; ++j) {
      sum_re[j] = re[j + 1] + re[kRadix - 1 - j];
      sum_im[j] = im[j + 1] + im[kRadix - 1 - j];
      dif_re[j] = re[j + 1] - re[kRadix - 1 - j];
      dif_im[j] = im[j + 1] - im[kRadix - 1 - j];
      re[0] += sum_re[j];
      im[0] += sum_im[j];
    }
#pragma GCC unroll 6
    for (int k = 1; k <= kHalf; ++k) {
      Number even_re = re0, even_im = im0, odd_re = {}, odd_im = {};
#pragma GCC unroll 6
      for (int j = 1; j <= kHalf; ++j) {
        const int position = j * k % kRadix;
        const double c = Roots<kRadix>::kCos[(position <= kHalf ? position : kRadix - position) - 1];
        const double s =
            position <= kHalf ? Roots<kRadix>::kSin[position - 1] : -Roots<kRadix>::kSin[kRadix - position - 1];
        even_re += c * sum_re[j - 1];
        even_im += c * sum_im[j - 1];
        odd_re += s * dif_re[j - 1];
        odd_im += s * dif_im[j - 1];
      }
      re[k] = even_re + odd_im;
      im[k] = even_im - odd_re;
      re[kRadix - k] = even_re - odd_im;
      im[kRadix - k] = even_im + odd_re;
    }
  }
}

// Transforms columns [q, q + kLanes) at index p of m. `kTurns`: multiplies the results by roots.
template <int kRadix, int kLanes, bool kTurns>
[[gnu::always_inline]] inline void columns(const FftStage& s, int64_t p, int64_t q, const double* roots) {
  const int64_t step = s.m * s.width, from = p * s.width + q, to = p * kRadix * s.width + q;
  using Number = typename DoublesOf<kLanes>::type;
  using InMemory = typename DoublesOf<kLanes>::Unaligned;
  Number re[kRadix], im[kRadix];
#pragma GCC unroll 13
  for (int j = 0; j < kRadix; ++j) {
    re[j] = *reinterpret_cast<const InMemory*>(s.x_re + from + j * step);
    im[j] = *reinterpret_cast<const InMemory*>(s.x_im + from + j * step);
  }
  transform<kRadix>(re, im);
#pragma GCC unroll 13
  for (int j = 0; j < kRadix; ++j) {
    Number r = re[j], i = im[j];
    if (kTurns && j > 0) {
      const double* root = roots + int64_t{2} * (j - 1);
      const double c = root[0], n = root[1];
      r = c * re[j] + n * im[j];
      i = c * im[j] - n * re[j];
    }
    *reinterpret_cast<InMemory*>(s.y_re + to + j * s.width) = r;
    *reinterpret_cast<InMemory*>(s.y_im + to + j * s.width) = i;
  }
}

template <int kRadix, int kLanes, bool kTurns>
[[gnu::always_inline]] inline void row(const FftStage& s, int64_t p) {
  const double* roots = s.roots + p * 2 * (kRadix - 1);
  int64_t q = 0;
  for (; q + kLanes <= s.width; q += kLanes) columns<kRadix, kLanes, kTurns>(s, p, q, roots);
  if constexpr (kLanes == 8) {
    for (; q + 4 <= s.width; q += 4) columns<kRadix, 4, kTurns>(s, p, q, roots);
  }
  for (; q < s.width; ++q) columns<kRadix, 1, kTurns>(s, p, q, roots);
}

template <int kRadix, int kLanes>
[[gnu::always_inline]] inline void run(const FftStage& s, int64_t first, int64_t last) {
  if (first == 0 && last > 0) {
    row<kRadix, kLanes, false>(s, 0);
    first = 1;
  }
  for (int64_t p = first; p < last; ++p) row<kRadix, kLanes, true>(s, p);
}

template <int kRadix>
FOR_AVX512 void run_avx512(const FftStage& s, int64_t first, int64_t last) {
  run<kRadix, 8>(s, first, last);
}
template <int kRadix>
FOR_AVX2 void run_avx2(const FftStage& s, int64_t first, int64_t last) {
  run<kRadix, 4>(s, first, last);
}
template <int kRadix>
void run_anywhere(const FftStage& s, int64_t first, int64_t last) {
  run<kRadix, 2>(s, first, last);
}

template <int kRadix>
RunFftStage best() {
  if (processor().has(Instructions::kAvx512)) return run_avx512<kRadix>;
  return processor().has(Instructions::kAvx2) ? run_avx2<kRadix> : run_anywhere<kRadix>;
}

}  // namespace

RunFftStage fft_stage(int radix) {
  switch (radix) {
    case 2:
      return best<2>();
    case 3:
      return best<3>();
    case 4:
      return best<4>();
    case 5:
      return best<5>();
    case 7:
      return best<7>();
    case 11:
      return best<11>();
    case 13:
      return best<13>();
    default:
      return nullptr;
  }
}

}  // namespace backplane::cpu
