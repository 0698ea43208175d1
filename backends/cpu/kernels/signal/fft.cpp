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

}  // namespace

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
  require_memory(length, 4 * int64_t{sizeof(double)});
  if (factors_of(length).empty())
    plan_convolution();
  else
    plan_stages();
}

void Fft::plan_stages() {
  int64_t n = length_;
  for (int radix : factors_of(length_)) {
    Stage stage{radix, n / radix, std::vector<double>(static_cast<size_t>(n / radix * (radix - 1) * 2))};
    parallel(stage.m, 1 + (1 << 10) / radix, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        for (int k = 1; k < radix; ++k) {
          double* to = stage.roots.data() + (p * (radix - 1) + k - 1) * 2;
          std::tie(to[0], to[1]) = root(p * k, n);
        }
      }
    });
    n = stage.m;
    stages_.push_back(std::move(stage));
  }
}

// Bluestein's algorithm: X[k] = c*[k] · Σ (x[i] c*[i]) c[k - i] is a convolution with the chirp c[i] = exp(√-1 · π · i²
// / n).
void Fft::plan_convolution() {
  const int64_t n = length_, m = convolution_length(n + bins_ - 1);
  require_memory(m, 8 * int64_t{sizeof(double)});
  convolution_ = of(m);
  chirp_.reserve(static_cast<size_t>(2 * n));
  constexpr int64_t kRootWork = 32;
  Pace pace;
  int64_t square = 0;  // i² modulo 2n
  for (int64_t i = 0; i < n; ++i) {
    pace.spend(kRootWork);
    const auto [c, s] = root(square, 2 * n);
    chirp_.push_back(c);
    chirp_.push_back(s);
    square = (square + 2 * i + 1) % (2 * n);
  }
  const Block memory = allocate_pages(4 * m * int64_t{sizeof(double)});
  auto* const doubles = reinterpret_cast<double*>(memory.get());
  ComplexLanes x{doubles, doubles + m}, other{doubles + 2 * m, doubles + 3 * m};
  for (int64_t i = 0; i < 2 * m; ++i) {
    pace.spend(1);
    doubles[i] = 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    pace.spend(4);
    const double c = chirp_[static_cast<size_t>(2 * i)], s = chirp_[static_cast<size_t>(2 * i + 1)];
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
  filter_.reserve(static_cast<size_t>(2 * m));
  for (int64_t i = 0; i < m; ++i) {
    pace.spend(2);
    filter_.push_back(spectrum.re[i] / static_cast<double>(m));
    filter_.push_back(spectrum.im[i] / static_cast<double>(m));
  }
}

ComplexLanes Fft::operator()(ComplexLanes x, ComplexLanes other, int64_t lanes, bool alone) const {
  if (convolution_ != nullptr) return convolve(x, other, lanes, alone);
  int64_t width = lanes;
  Pace pace;
  for (const Stage& stage : stages_) {
    const FftStage work{x.re, x.im, other.re, other.im, stage.roots.data(), stage.m, width};
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

ComplexLanes Fft::convolve(ComplexLanes x, ComplexLanes other, int64_t lanes, bool alone) const {
  const int64_t n = length_, m = convolution_->length();
  Pace pace;
  pace.spend(2 * m * lanes);
  clone_of<multiply>(x.re, x.im, chirp_.data(), -1, n, lanes);
  std::fill(x.re + n * lanes, x.re + m * lanes, 0.0);
  std::fill(x.im + n * lanes, x.im + m * lanes, 0.0);
  const auto the_other = [&](ComplexLanes one) { return one.re == x.re || one.re == x.im ? other : x; };
  ComplexLanes spectrum = (*convolution_)(x, other, lanes, alone);
  pace.spend(2 * m * lanes);
  clone_of<multiply>(spectrum.re, spectrum.im, filter_.data(), 1, m, lanes);
  ComplexLanes result = (*convolution_)(spectrum.swapped(), the_other(spectrum), lanes, alone).swapped();
  pace.spend(2 * m * lanes);
  clone_of<multiply>(result.re, result.im, chirp_.data(), -1, bins_, lanes);
  return result;
}

}  // namespace backplane::cpu
