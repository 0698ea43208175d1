// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_depthwise_tile.h"

#include "kernels/simd/q8_lanes.h"
#include "runtime/processor.h"

namespace backplane::cpu {

#ifdef Q8_LANES

namespace {

using namespace q8_lanes;

template <int kRows, int kPositions, int kWidth, bool kSigned>
struct Kind {
  using Bytes = typename Vectors<kWidth>::Bytes;
  using Int16s = typename Vectors<kWidth>::Int16s;
  using Int32s = typename Vectors<kWidth>::Int32s;
  using Floats = typename Vectors<kWidth>::Floats;
  using Quads = Four<Bytes>;

  [[gnu::always_inline]] static inline Bytes unsigned_at(const uint8_t* x) {
    return kSigned ? load<Bytes>(x) ^ (Bytes{} + kSign) : load<Bytes>(x);
  }
  [[gnu::always_inline]] static inline Quads quads_at(const uint8_t* x, int64_t column) {
    const Bytes x0 = unsigned_at(x), x1 = unsigned_at(x + column), x2 = unsigned_at(x + 2 * column);
    const Bytes x3 = kPositions == 2 ? unsigned_at(x + 3 * column) : x2;
    const Bytes low01 = punpcklbw(x0, x1), high01 = punpckhbw(x0, x1);
    const Bytes low23 = punpcklbw(x2, x3), high23 = punpckhbw(x2, x3);
    return {punpcklwd(low01, low23), punpckhwd(low01, low23), punpcklwd(high01, high23), punpckhwd(high01, high23)};
  }

  // The constants of the channels in one of the four vectors of a chunk.
  struct Constants {
    Int32s start;
    Floats scale, added;
  };
  // Computes the results at one position. A quad holds four input columns of a channel; q0 to q2 are the quads of the
  // three rows of the window, w0 to w2 their weights.
  [[gnu::always_inline]] static inline Int32s position(const Constants& c, const Bytes& q0, const Bytes& q1,
                                                       const Bytes& q2, const Bytes& w0, const Bytes& w1,
                                                       const Bytes& w2) {
    Int32s sum = c.start;
    add_products(sum, q0, w0);
    add_products(sum, q1, w1);
    add_products(sum, q2, w2);
    return whole<Int32s>(plus_product(c.added, __builtin_convertvector(sum, Floats), c.scale));
  }
  // Computes one of the four vectors of channels at all positions of a tile. q0 to q3 are the quads of its input rows.
  [[gnu::always_inline]] static inline void part(const Bytes& q0, const Bytes& q1, const Bytes& q2, const Bytes& q3,
                                                 const std::byte* pack, Int32s& y00, Int32s& y01, Int32s& y10,
                                                 Int32s& y11) {
    const Constants c{load<Int32s>(pack), load<Floats>(pack + 4 * kWidth), load<Floats>(pack + 8 * kWidth)};
    const std::byte* weights = pack + 12 * kWidth;
    constexpr int64_t kPosition = 4 * kWidth, kRow = kPositions * kPosition;
    y00 = y01 = y10 = y11 = c.start;
    const Bytes w0 = load<Bytes>(weights), w1 = load<Bytes>(weights + kRow), w2 = load<Bytes>(weights + 2 * kRow);
    y00 = position(c, q0, q1, q2, w0, w1, w2);
    if (kRows == 2) y10 = position(c, q1, q2, q3, w0, w1, w2);
    if (kPositions == 1) return;
    const Bytes v0 = load<Bytes>(weights + kPosition), v1 = load<Bytes>(weights + kPosition + kRow);
    const Bytes v2 = load<Bytes>(weights + kPosition + 2 * kRow);
    y01 = position(c, q0, q1, q2, v0, v1, v2);
    if (kRows == 2) y11 = position(c, q1, q2, q3, v0, v1, v2);
  }

  [[gnu::always_inline]] static inline void run(const DepthwiseTile& t) {
    const auto requantization = Requantization<kWidth>::of(t.zero, t.low, t.high, t.result_signed);
    const uint8_t *x0 = t.rows[0], *x1 = t.rows[1], *x2 = t.rows[2], *x3 = kRows == 2 ? t.rows[3] : t.rows[2];
    const int64_t column = t.x_column, x_step = t.x_step, y_position = t.y_position, y_row = t.y_row;
    const std::byte* const pack = t.pack;
    uint8_t* y = t.y;
    for (int64_t i = 0; i < t.count; ++i, y += kPositions * y_position) {
      const Quads q0 = quads_at(x0, column), q1 = quads_at(x1, column);
      const Quads q2 = quads_at(x2, column);
      const Quads q3 = kRows == 2 ? quads_at(x3, column) : q2;
      Int32s a00, a01, a10, a11, b00, b01, b10, b11;
      part(q0.a, q1.a, q2.a, q3.a, pack, a00, a01, a10, a11);
      part(q0.b, q1.b, q2.b, q3.b, pack + kWidth, b00, b01, b10, b11);
      const Int16s y00 = requantization.to_int16s(a00, b00), y01 = requantization.to_int16s(a01, b01);
      const Int16s y10 = requantization.to_int16s(a10, b10), y11 = requantization.to_int16s(a11, b11);
      part(q0.c, q1.c, q2.c, q3.c, pack + 2 * kWidth, a00, a01, a10, a11);
      part(q0.d, q1.d, q2.d, q3.d, pack + 3 * kWidth, b00, b01, b10, b11);
      store(y, requantization.to_bytes(y00, requantization.to_int16s(a00, b00)));
      if (kPositions == 2) store(y + y_position, requantization.to_bytes(y01, requantization.to_int16s(a01, b01)));
      if (kRows == 2) store(y + y_row, requantization.to_bytes(y10, requantization.to_int16s(a10, b10)));
      if (kRows == 2 && kPositions == 2)
        store(y + y_row + y_position, requantization.to_bytes(y11, requantization.to_int16s(a11, b11)));
      x0 += x_step;
      x1 += x_step;
      x2 += x_step;
      x3 += x_step;
    }
  }
};

template <int kPositions, int kWidth, bool kSigned>
FOR_AVX512 void convolve(const DepthwiseTile& t) {
  Kind<kPositions, kPositions, kWidth, kSigned>::run(t);
}

template <int kPositions>
DepthwiseKernel kernel_of(int64_t width, bool is_signed) {
  if (is_signed) return width == 64 ? convolve<kPositions, 64, true> : convolve<kPositions, 32, true>;
  return width == 64 ? convolve<kPositions, 64, false> : convolve<kPositions, 32, false>;
}

}  // namespace

DepthwiseKernel depthwise_kernel(int64_t positions, int64_t width, bool is_signed) {
  if (!processor().vnni) return nullptr;
  return positions == 1 ? kernel_of<1>(width, is_signed) : kernel_of<2>(width, is_signed);
}

#else

DepthwiseKernel depthwise_kernel(int64_t, int64_t, bool) {
  return nullptr;
}

#endif

}  // namespace backplane::cpu
