// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of many sequences of points, called lines. Transforms of real points cost half as much as those of
// complex points.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>

#include "kernels/signal/fft.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/shape.h"
#include "runtime/tables.h"
#include "runtime/watch.h"

namespace backplane::cpu {

class Spectrum {
 public:
  enum class Kind {
    kComplex,        // complex points to complex bins
    kInverse,        // the inverse of kComplex, which differs in the sign of the exponent
    kReal,           // real points to the first length / 2 + 1 bins; the other bins are their conjugates
    kInverseToReal,  // the inverse of kReal
  };

  // Transforms `lines` lines of `length` points each, without scaling. Throws sdk::Error like Fft::of.
  Spectrum(Kind kind, int64_t length, int64_t lines);
  // Makes the spectrum, unless its tables are too large for planning: then the first run makes it. Throws
  // sdk::Error if they do not fit in memory.
  static Lazy<Spectrum> planned(const PlanContext& context, Kind kind, int64_t length, int64_t lines);

  int64_t bins() const { return bins_; }  // number of stored bins per line
  // Returns the scratch memory that `run` needs.
  static int64_t scratch_bytes(Kind kind, int64_t length, int64_t lines, int threads) {
    return product({threads, Layout(kind, length, lines).part_bytes});
  }

  // load(line) returns a function point(i), which returns point i of the line as std::complex<double>, or 0 if the line
  // has fewer points. point(i) is called for i < length; with kInverseToReal, for i <= length / 2. With kReal,
  // imaginary parts are ignored. store(line) returns a function bin(i, re, im), which stores bin i or, for an inverse,
  // point i. `load` and `store` are called on several threads, `load` more than once for a line.
  template <class Load, class Store>
  void run(const Load& load, const Store& store, void* scratch) const;

 private:
  static constexpr int64_t kMaxLanes = 8;

  // Lines that are transformed together: `count` lines from `first` on. If there are fewer lines than lanes, the last
  // line fills the other lanes.
  struct Group {
    int64_t first, count;
    ComplexLanes x, other;
  };
  template <class Load, class Store>
  void complex_lines(const Group& group, const Load& load, const Store& store) const;
  template <class Load, class Store>
  void even_lines(const Group& group, const Load& load, const Store& store) const;
  template <class Load, class Store>
  void odd_lines(const Group& group, const Load& load, const Store& store) const;
  template <class Load, class Store>
  void even_lines_back(const Group& group, const Load& load, const Store& store) const;
  template <class Load, class Store>
  void odd_lines_back(const Group& group, const Load& load, const Store& store) const;

  // Calls body(i) for i in [begin, end). Checks now and then whether the run must end early.
  template <class Body>
  static void each(int64_t begin, int64_t end, const Body& body) {
    constexpr int64_t kPart = int64_t{1} << 14;
    Pace pace;
    for (int64_t first = begin; first < end; first += kPart) {
      const int64_t last = std::min(end, first + kPart);
      pace.spend(8 * (last - first));
      for (int64_t i = first; i < last; ++i) body(i);
    }
  }

  // The sizes that follow from the constructor's arguments. Needs no tables.
  struct Layout {
    Layout(Kind kind, int64_t length, int64_t lines);
    bool halved;               // real lines of even length: two adjacent points are treated as one complex point
    int64_t fft_length, bins;  // of the Fft
    int64_t lanes;
    int64_t part_bytes;  // bytes of scratch memory per thread
  };

  // Returns the index of x[i] of a lane.
  int64_t at(int64_t i, int64_t lane) const { return i * lanes_ + lane; }

  Kind kind_;
  int64_t length_, bins_, lines_;
  bool halved_;
  std::shared_ptr<const Fft> fft_;  // for `length` points, or half of them if halved
  Block turns_;                     // if halved: pairs of cosine and sine of 2π · i / length, as doubles
  int64_t lanes_;
  int64_t part_bytes_;
};

template <class Load, class Store>
void Spectrum::run(const Load& load, const Store& store, void* scratch) const {
  const int64_t per_lane = kind_ == Kind::kReal && !halved_ ? 2 : 1, size = lanes_ * per_lane;
  const int64_t groups = (lines_ + size - 1) / size;
  parallel(groups, 1 + (int64_t{1} << 12) / (length_ * size), [&](int64_t begin, int64_t end) {
    auto* memory = reinterpret_cast<double*>(static_cast<std::byte*>(scratch) + thread_index() * part_bytes_);
    const int64_t room = fft_->room() * lanes_;
    for (int64_t g = begin; g < end; ++g) {
      const Group group{
          g * size, std::min(size, lines_ - g * size), {memory, memory + room}, {memory + 2 * room, memory + 3 * room}};
      if (kind_ == Kind::kReal)
        halved_ ? even_lines(group, load, store) : odd_lines(group, load, store);
      else if (kind_ == Kind::kInverseToReal)
        halved_ ? even_lines_back(group, load, store) : odd_lines_back(group, load, store);
      else
        complex_lines(group, load, store);
    }
  });
}

template <class Load, class Store>
void Spectrum::complex_lines(const Group& group, const Load& load, const Store& store) const {
  const bool inverse = kind_ == Kind::kInverse;
  const ComplexLanes x = inverse ? group.x.swapped() : group.x;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const auto point = load(group.first + std::min(lane, group.count - 1));
    each(0, length_, [&](int64_t i) {
      const std::complex<double> value = point(i);
      x.re[at(i, lane)] = value.real();
      x.im[at(i, lane)] = value.imag();
    });
  }
  ComplexLanes y = (*fft_)(group.x, group.other, lanes_, lines_ == 1);
  if (inverse) y = y.swapped();
  for (int64_t lane = 0; lane < group.count; ++lane) {
    const auto bin = store(group.first + lane);
    each(0, bins_, [&](int64_t i) { bin(i, y.re[at(i, lane)], y.im[at(i, lane)]); });
  }
}

// The transform of x[2i] + j·x[2i+1] is that of the even points (its conjugate-symmetric part) plus j times that of the
// odd points.
template <class Load, class Store>
void Spectrum::even_lines(const Group& group, const Load& load, const Store& store) const {
  const auto* turns = reinterpret_cast<const double*>(turns_.get());
  const int64_t half = length_ / 2;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const auto point = load(group.first + std::min(lane, group.count - 1));
    each(0, half, [&](int64_t i) {
      group.x.re[at(i, lane)] = point(2 * i).real();
      group.x.im[at(i, lane)] = point(2 * i + 1).real();
    });
  }
  const ComplexLanes y = (*fft_)(group.x, group.other, lanes_, lines_ == 1);
  for (int64_t lane = 0; lane < group.count; ++lane) {
    const auto bin = store(group.first + lane);
    bin(0, y.re[lane] + y.im[lane], 0.0);
    bin(half, y.re[lane] - y.im[lane], 0.0);
    each(1, half, [&](int64_t i) {
      const int64_t a = at(i, lane), b = at(half - i, lane);
      const double even_re = y.re[a] + y.re[b], even_im = y.im[a] - y.im[b];
      const double odd_re = y.im[a] + y.im[b], odd_im = y.re[b] - y.re[a];
      const double c = turns[2 * i], s = turns[2 * i + 1];
      bin(i, 0.5 * (even_re + c * odd_re + s * odd_im), 0.5 * (even_im + c * odd_im - s * odd_re));
    });
  }
}

// Transforms pairs of real lines, one as the real and one as the imaginary part. Powers of two scale both to the same
// magnitude, so that the rounding errors of one do not swamp the other. A line with an infinity or NaN is transformed
// without a partner.
template <class Load, class Store>
void Spectrum::odd_lines(const Group& group, const Load& load, const Store& store) const {
  struct Half {
    int64_t line = -1;
    double scale = 1;
  };
  Half halves[kMaxLanes][2];
  int64_t used = 0;
  const auto flush = [&] {
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      const Half *pair = halves[std::min(lane, used - 1)], &a = pair[0], &b = pair[1];
      const auto first = load(a.line), second = load(b.line < 0 ? a.line : b.line);
      each(0, length_, [&](int64_t i) {
        group.x.re[at(i, lane)] = first(i).real() * a.scale;
        group.x.im[at(i, lane)] = b.line < 0 ? 0 : second(i).real() * b.scale;
      });
    }
    const ComplexLanes y = (*fft_)(group.x, group.other, lanes_, lines_ == 1);
    for (int64_t lane = 0; lane < used; ++lane) {
      const Half &a = halves[lane][0], &b = halves[lane][1];
      const auto first = store(a.line);
      if (b.line < 0) {
        each(0, bins_, [&](int64_t i) { first(i, y.re[at(i, lane)], y.im[at(i, lane)]); });
        continue;
      }
      const auto second = store(b.line);
      const double unscale_a = 0.5 / a.scale, unscale_b = 0.5 / b.scale;
      each(0, bins_, [&](int64_t i) {
        const int64_t here = at(i, lane), there = at(i == 0 ? 0 : length_ - i, lane);
        first(i, unscale_a * (y.re[here] + y.re[there]), unscale_a * (y.im[here] - y.im[there]));
        second(i, unscale_b * (y.im[here] + y.im[there]), unscale_b * (y.re[there] - y.re[here]));
      });
    }
    used = 0;
  };
  Half waiting;
  const auto add = [&](const Half& a, const Half& b) {
    halves[used][0] = a;
    halves[used++][1] = b;
    if (used == lanes_) flush();
  };
  for (int64_t line = group.first; line < group.first + group.count; ++line) {
    double largest = 0, other = 0;  // `other` becomes NaN if a point is infinite or NaN
    const auto point = load(line);
    each(0, length_, [&](int64_t i) {
      const double value = point(i).real();
      largest = std::max(largest, std::fabs(value));
      other += value * 0;
    });
    if (other != 0) {
      add({line, 1}, {});
      continue;
    }
    int exponent = 0;
    if (largest > 0) std::frexp(largest, &exponent);
    const Half half{line, std::ldexp(1.0, std::clamp(-exponent, -900, 900))};
    if (waiting.line < 0) {
      waiting = half;
    } else {
      add(waiting, half);
      waiting = {};
    }
  }
  if (waiting.line >= 0) add({waiting.line, 1}, {});
  if (used > 0) flush();
}

template <class Load, class Store>
void Spectrum::even_lines_back(const Group& group, const Load& load, const Store& store) const {
  const auto* turns = reinterpret_cast<const double*>(turns_.get());
  const int64_t half = length_ / 2;
  const ComplexLanes x = group.x.swapped();
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const auto point = load(group.first + std::min(lane, group.count - 1));
    each(0, half, [&](int64_t i) {
      std::complex<double> a = point(i), b = point(half - i);
      if (i == 0) {  // the first and the middle bin of a real line are real
        a = a.real();
        b = b.real();
      }
      const double even_re = a.real() + b.real(), even_im = a.imag() - b.imag();
      const double dif_re = a.real() - b.real(), dif_im = a.imag() + b.imag();
      const double c = turns[2 * i], s = turns[2 * i + 1];
      const double odd_re = c * dif_re - s * dif_im, odd_im = c * dif_im + s * dif_re;
      x.re[at(i, lane)] = even_re - odd_im;
      x.im[at(i, lane)] = even_im + odd_re;
    });
  }
  const ComplexLanes y = (*fft_)(group.x, group.other, lanes_, lines_ == 1).swapped();
  for (int64_t lane = 0; lane < group.count; ++lane) {
    const auto bin = store(group.first + lane);
    each(0, half, [&](int64_t i) {
      bin(2 * i, y.re[at(i, lane)], 0.0);
      bin(2 * i + 1, y.im[at(i, lane)], 0.0);
    });
  }
}

template <class Load, class Store>
void Spectrum::odd_lines_back(const Group& group, const Load& load, const Store& store) const {
  const ComplexLanes x = group.x.swapped();
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const auto point = load(group.first + std::min(lane, group.count - 1));
    each(0, length_ / 2 + 1, [&](int64_t i) {
      const std::complex<double> value = point(i);
      x.re[at(i, lane)] = value.real();
      x.im[at(i, lane)] = i == 0 ? 0 : value.imag();
      if (i == 0) return;
      x.re[at(length_ - i, lane)] = value.real();
      x.im[at(length_ - i, lane)] = -value.imag();
    });
  }
  const ComplexLanes y = (*fft_)(group.x, group.other, lanes_, lines_ == 1).swapped();
  for (int64_t lane = 0; lane < group.count; ++lane) {
    const auto bin = store(group.first + lane);
    each(0, length_, [&](int64_t i) { bin(i, y.re[at(i, lane)], 0.0); });
  }
}

}  // namespace backplane::cpu
