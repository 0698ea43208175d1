// SPDX-License-Identifier: Apache-2.0
#include "kernels/signal/fft.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <tuple>
#include <utility>

#include "kernels/signal/fft_stage.h"
#include "kernels/simd/clones.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/shape.h"
#include "runtime/thread_state.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

constexpr int kRadices[] = {4, 2, 3, 5, 7, 11, 13};
// The measured cost of a stage per element, relative to radix 4.
constexpr double kStageCosts[] = {1, 0.8, 1.1, 1.6, 2.2, 4, 5};

// The minimum work of one task of a stage, in doubles; such a task takes a few microseconds.
constexpr int64_t kTaskDoubles = int64_t{1} << 15;

// Factors n into radices. Returns an empty vector if n has other prime factors.
std::vector<int> factors_of(int64_t n) {
  std::vector<int> factors;
  for (int radix : kRadices) {
    for (; n % radix == 0; n /= radix) factors.push_back(radix);
  }
  if (n != 1) factors.clear();
  return factors;
}

double cost_of(int64_t n) {
  double cost = 0;
  int64_t rest = n;
  for (size_t r = 0; r < std::size(kRadices); ++r) {
    for (; rest % kRadices[r] == 0; rest /= kRadices[r]) cost += kStageCosts[r];
  }
  return cost * static_cast<double>(n);
}

// Returns the cheapest length that is at least `least` and has no prime factor above 5.
int64_t convolution_length(int64_t least) {
  int64_t best = 1;
  while (best < least) best *= 2;
  const int64_t most = best;
  double best_cost = cost_of(best);
  for (int64_t fives = 1; fives <= most; fives *= 5) {
    for (int64_t threes = fives; threes <= most; threes *= 3) {
      int64_t n = threes;
      while (n < least) n *= 2;
      if (n > most) continue;
      if (const double cost = cost_of(n); cost < best_cost) {
        best = n;
        best_cost = cost;
      }
    }
  }
  return best;
}

Block allocate_doubles(int64_t count) {
  return allocate_pages(product({count, int64_t{sizeof(double)}}));
}

double* doubles_in(const Block& block) {
  return reinterpret_cast<double*>(block.get());
}

// Returns the size of the tables of all stages of a transform of `length` points. Together they have length - 1 roots.
int64_t bytes_of_roots(int64_t length) {
  return product({length, 2 * int64_t{sizeof(double)}});
}

}  // namespace

int64_t Fft::room_of(int64_t length, int64_t bins) {
  return length <= 1 || !factors_of(length).empty() ? length : convolution_length(length + bins - 1);
}

int64_t Fft::table_bytes(int64_t length, int64_t bins) {
  const int64_t room = room_of(length, bins);
  return room == length ? bytes_of_roots(length)
                        : bytes_of_roots(room) + product({2 * int64_t{sizeof(double)}, length + room});
}

std::pair<double, double> Fft::root(int64_t i, int64_t n) {
  int64_t eighths = 8 * i;  // the angle in eighths of a turn, times n
  const bool lower = eighths > 4 * n;
  if (lower) eighths = 8 * n - eighths;
  const bool left = eighths > 2 * n;
  if (left) eighths = 4 * n - eighths;
  const bool steep = eighths > n;
  if (steep) eighths = 2 * n - eighths;
  const double angle = std::numbers::pi / 4 * (static_cast<double>(eighths) / static_cast<double>(n));
  double c = std::cos(angle), s = std::sin(angle);
  if (steep) std::swap(c, s);
  return {left ? -c : c, lower ? -s : s};
}

std::shared_ptr<const Fft> Fft::of(int64_t length) {
  return of(length, length);
}

std::shared_ptr<const Fft> Fft::of(int64_t length, int64_t bins) {
  static std::mutex mutex;
  static std::map<std::pair<int64_t, int64_t>, std::weak_ptr<const Fft>> plans;
  const std::pair key(length, bins);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = plans.find(key); found != plans.end()) {
      if (std::shared_ptr<const Fft> plan = found->second.lock()) return plan;
    }
  }
  auto plan = std::make_shared<const Fft>(length, bins);
  const std::lock_guard lock(mutex);
  std::erase_if(plans, [](const auto& entry) { return entry.second.expired(); });
  plans[key] = plan;
  return plan;
}

Fft::Fft(int64_t length, int64_t bins) : length_(length), bins_(bins) {
  if (length <= 1) return;
  require_memory(table_bytes(length, bins), 1);
  const UseBudget uncharged(nullptr);  // not charged to one device's memory budget: all devices share the plan
  if (factors_of(length).empty())
    plan_convolution();
  else
    plan_stages();
}

void Fft::plan_stages() {
  int64_t n = length_;
  for (int radix : factors_of(length_)) {
    Stage stage{radix, n / radix, allocate_doubles(product({n / radix, 2 * int64_t{radix - 1}}))};
    parallel(stage.m, 1 + (1 << 10) / radix, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        for (int k = 1; k < radix; ++k) {
          double* to = doubles_in(stage.roots) + (p * (radix - 1) + k - 1) * 2;
          std::tie(to[0], to[1]) = root(p * k, n);
        }
      }
    });
    n = stage.m;
    stages_.push_back(std::move(stage));
  }
}

// Bluestein's algorithm: X[k] = c*[k] · Σ (x[i] c*[i]) c[k - i] is a convolution with the chirp c[i] = exp(√-1 · π · i²
// / n), whose conjugate is c*.
void Fft::plan_convolution() {
  const int64_t n = length_, m = room_of(length_, bins_);
  convolution_ = of(m);
  chirp_ = allocate_doubles(2 * n);
  double* const chirp = doubles_in(chirp_);
  constexpr int64_t kRootWork = 32;
  Pace pace;
  int64_t square = 0;  // i² modulo 2n
  for (int64_t i = 0; i < n; ++i) {
    pace.spend(kRootWork);
    std::tie(chirp[2 * i], chirp[2 * i + 1]) = root(square, 2 * n);
    square = (square + 2 * i + 1) % (2 * n);
  }
  const Block memory = allocate_doubles(4 * m);
  double* const doubles = doubles_in(memory);
  ComplexLanes x{doubles, doubles + m}, other{doubles + 2 * m, doubles + 3 * m};
  for (int64_t i = 0; i < 2 * m; ++i) {
    pace.spend(1);
    doubles[i] = 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    pace.spend(4);
    const double c = chirp[2 * i], s = chirp[2 * i + 1];
    if (i < bins_) {
      x.re[i] = c;
      x.im[i] = s;
    }
    if (i > 0) {
      x.re[m - i] = c;
      x.im[m - i] = s;
    }
  }
  const ComplexLanes spectrum = (*convolution_)(x, other, 1, true);
  filter_ = allocate_doubles(2 * m);
  for (int64_t i = 0; i < m; ++i) {
    pace.spend(2);
    doubles_in(filter_)[2 * i] = spectrum.re[i] / static_cast<double>(m);
    doubles_in(filter_)[2 * i + 1] = spectrum.im[i] / static_cast<double>(m);
  }
}

ComplexLanes Fft::operator()(ComplexLanes x, ComplexLanes other, int64_t lanes, bool alone) const {
  if (convolution_ != nullptr) return convolve(x, other, lanes, alone);
  int64_t width = lanes;
  Pace pace;
  for (const Stage& stage : stages_) {
    const FftStage work{x.re, x.im, other.re, other.im, doubles_in(stage.roots), stage.m, width};
    const RunFftStage run = fft_stage(stage.radix);
    const int64_t part = 1 + kTaskDoubles / (stage.radix * width);
    if (alone) {
      parallel(stage.m, part, [&](int64_t begin, int64_t end) { run(work, begin, end); });
    } else {
      for (int64_t first = 0; first < stage.m; first += part) {
        const int64_t last = std::min(stage.m, first + part);
        pace.spend((last - first) * stage.radix * width);
        run(work, first, last);
      }
    }
    std::swap(x, other);
    width *= stage.radix;
  }
  return x;
}

namespace {

// Multiplies each x[i] by factors[i], or by its conjugate if `sign` is -1.
CLONED void multiply(double* re, double* im, const double* factors, double sign, int64_t n, int64_t lanes) {
  for (int64_t i = 0; i < n; ++i) {
    const double c = factors[2 * i], s = sign * factors[2 * i + 1];
    for (int64_t l = i * lanes; l < (i + 1) * lanes; ++l) {
      const double r = re[l] * c - im[l] * s;
      im[l] = re[l] * s + im[l] * c;
      re[l] = r;
    }
  }
}

}  // namespace

namespace {

// Calls body(begin, end) for parts of [0, n), `work` being that of one element.
template <class Body>
void in_parts(int64_t n, int64_t work, const Body& body) {
  const int64_t part = 1 + (int64_t{1} << 16) / work;
  Pace pace;
  for (int64_t i = 0; i < n; i += part) {
    const int64_t end = std::min(n, i + part);
    pace.spend((end - i) * work);
    body(i, end);
  }
}

}  // namespace

ComplexLanes Fft::convolve(ComplexLanes x, ComplexLanes other, int64_t lanes, bool alone) const {
  const int64_t n = length_, m = room();
  const auto multiply_all = [&](ComplexLanes y, const Block& factors, double sign, int64_t count) {
    in_parts(count, 2 * lanes, [&](int64_t begin, int64_t end) {
      clone_of<multiply>(y.re + begin * lanes, y.im + begin * lanes, doubles_in(factors) + 2 * begin, sign, end - begin,
                         lanes);
    });
  };
  multiply_all(x, chirp_, -1, n);
  in_parts(m - n, 2 * lanes, [&](int64_t begin, int64_t end) {
    std::fill(x.re + (n + begin) * lanes, x.re + (n + end) * lanes, 0.0);
    std::fill(x.im + (n + begin) * lanes, x.im + (n + end) * lanes, 0.0);
  });
  const auto the_other = [&](ComplexLanes one) { return one.re == x.re || one.re == x.im ? other : x; };
  ComplexLanes spectrum = (*convolution_)(x, other, lanes, alone);
  multiply_all(spectrum, filter_, 1, m);
  ComplexLanes result = (*convolution_)(spectrum.swapped(), the_other(spectrum), lanes, alone).swapped();
  multiply_all(result, chirp_, -1, bins_);
  return result;
}

}  // namespace backplane::cpu
