// SPDX-License-Identifier: Apache-2.0
#include "kernels/signal/fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "kernels/signal/spectrum.h"

namespace backplane::cpu {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> noise(int64_t n, uint32_t seed) {
  std::vector<Complex> x(static_cast<size_t>(n));
  uint32_t state = seed * 2654435761u + 1;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state) / 4294967296.0 - 0.5;
  };
  for (Complex& value : x) value = {next(), next()};
  return x;
}

// Returns bin k of the transform, computed by its definition.
Complex bin(const std::vector<Complex>& x, int64_t k) {
  const auto n = static_cast<int64_t>(x.size());
  Complex sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n);
    sum += x[static_cast<size_t>(i)] * Complex(std::cos(angle), std::sin(angle));
  }
  return sum;
}

TEST(Fft, IsTheSumThatDefinesItForEveryLength) {
  for (int64_t n = 1; n <= 300; ++n) {
    for (int64_t lanes : {1, 3, 8}) {
      const auto plan = Fft::of(n);
      const int64_t room = plan->room() * lanes;
      std::vector<double> memory(static_cast<size_t>(4 * room));
      const ComplexLanes x{memory.data(), memory.data() + room}, other{x.re + 2 * room, x.re + 3 * room};
      std::vector<std::vector<Complex>> lines;
      for (int64_t l = 0; l < lanes; ++l) {
        lines.push_back(noise(n, static_cast<uint32_t>(n * 10 + l)));
        for (int64_t i = 0; i < n; ++i) {
          x.re[i * lanes + l] = lines.back()[static_cast<size_t>(i)].real();
          x.im[i * lanes + l] = lines.back()[static_cast<size_t>(i)].imag();
        }
      }
      const ComplexLanes y = (*plan)(x, other, lanes, false);
      for (int64_t l = 0; l < lanes; ++l) {
        for (int64_t k = 0; k < n; k += 1 + n / 9) {
          const Complex expected = bin(lines[static_cast<size_t>(l)], k);
          ASSERT_NEAR(y.re[k * lanes + l], expected.real(), 1e-12 * std::sqrt(n)) << n << " " << lanes << " " << k;
          ASSERT_NEAR(y.im[k * lanes + l], expected.imag(), 1e-12 * std::sqrt(n)) << n << " " << lanes << " " << k;
        }
      }
    }
  }
}

TEST(Fft, IsRightForLongLines) {
  for (int64_t n : {4096, 5040, 10007, 65536, 100003}) {
    const auto plan = Fft::of(n);
    const int64_t room = plan->room();
    std::vector<double> memory(static_cast<size_t>(4 * room));
    const ComplexLanes x{memory.data(), memory.data() + room}, other{x.re + 2 * room, x.re + 3 * room};
    const std::vector<Complex> line = noise(n, 7);
    for (int64_t i = 0; i < n; ++i) {
      x.re[i] = line[static_cast<size_t>(i)].real();
      x.im[i] = line[static_cast<size_t>(i)].imag();
    }
    const ComplexLanes y = (*plan)(x, other, 1, true);
    for (int64_t k : {int64_t{0}, int64_t{1}, n / 3, n - 1}) {
      const Complex expected = bin(line, k);
      EXPECT_NEAR(y.re[k], expected.real(), 1e-13 * static_cast<double>(n)) << n << " " << k;
      EXPECT_NEAR(y.im[k], expected.imag(), 1e-13 * static_cast<double>(n)) << n << " " << k;
    }
  }
}

// Covers all kinds of transforms, even and odd lengths, and full and partial groups of lines.
class SpectrumOf : public ::testing::TestWithParam<int64_t> {
 protected:
  std::vector<std::vector<Complex>> transform(Spectrum::Kind kind, const std::vector<std::vector<Complex>>& lines) {
    const int64_t n = GetParam();
    const Spectrum spectrum(kind, n, static_cast<int64_t>(lines.size()));
    std::vector<std::byte> scratch(static_cast<size_t>(Spectrum::scratch_bytes(kind, n, std::ssize(lines), 1)));
    std::vector<std::vector<Complex>> results(lines.size(), std::vector<Complex>(static_cast<size_t>(spectrum.bins())));
    spectrum.run(
        [&](int64_t line) {
          return [&points = lines[static_cast<size_t>(line)]](int64_t i) { return points[static_cast<size_t>(i)]; };
        },
        [&](int64_t line) {
          return [&bins = results[static_cast<size_t>(line)]](int64_t i, double re, double im) {
            bins[static_cast<size_t>(i)] = {re, im};
          };
        },
        scratch.data());
    return results;
  }
};

TEST_P(SpectrumOf, RealLinesIsTheFirstHalf) {
  for (size_t count : {1u, 2u, 5u, 16u, 19u}) {
    std::vector<std::vector<Complex>> lines;
    for (uint32_t l = 0; l < count; ++l) {
      lines.push_back(noise(GetParam(), l));
      const double scale = std::pow(10.0, static_cast<int>(l % 5) * 4 - 8);  // lines of different magnitudes
      for (Complex& value : lines.back()) value = value.real() * scale;
    }
    const auto bins = transform(Spectrum::Kind::kReal, lines);
    for (size_t l = 0; l < count; ++l) {
      double norm = 0;
      for (const Complex& value : lines[l]) norm += std::norm(value);
      for (size_t k = 0; k < bins[l].size(); ++k)
        ASSERT_NEAR(std::abs(bins[l][k] - bin(lines[l], static_cast<int64_t>(k))), 0, 1e-13 * std::sqrt(norm) * 10)
            << count << " " << l << " " << k;
    }
    const auto back = transform(Spectrum::Kind::kInverseToReal, bins);
    for (size_t l = 0; l < count; ++l) {
      const double scale = static_cast<double>(GetParam());
      for (size_t i = 0; i < lines[l].size(); ++i)
        ASSERT_NEAR(back[l][i].real() / scale, lines[l][i].real(), 1e-12 * std::abs(lines[l][i].real()) + 1e-14 * 1e8)
            << count << " " << l << " " << i;
    }
  }
}

TEST_P(SpectrumOf, ComplexLinesGoesForthAndBack) {
  std::vector<std::vector<Complex>> lines;
  for (uint32_t l = 0; l < 11; ++l) lines.push_back(noise(GetParam(), l));
  const auto bins = transform(Spectrum::Kind::kComplex, lines);
  const auto back = transform(Spectrum::Kind::kInverse, bins);
  for (size_t l = 0; l < lines.size(); ++l) {
    for (size_t i = 0; i < lines[l].size(); ++i)
      ASSERT_NEAR(std::abs(back[l][i] / static_cast<double>(GetParam()) - lines[l][i]), 0, 1e-13) << l << " " << i;
  }
}

TEST_P(SpectrumOf, KeepsWhatIsNotFiniteInItsOwnLine) {
  std::vector<std::vector<Complex>> lines;
  for (uint32_t l = 0; l < 9; ++l) {
    lines.push_back(noise(GetParam(), l));
    for (Complex& value : lines.back()) value = value.real();
  }
  lines[3][1] = std::nan("");
  lines[4][0] = HUGE_VAL;
  const auto bins = transform(Spectrum::Kind::kReal, lines);
  for (size_t l = 0; l < lines.size(); ++l) {
    const bool finite = l != 3 && l != 4;
    for (const Complex& value : bins[l]) EXPECT_EQ(std::isfinite(std::abs(value)), finite) << l;
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, SpectrumOf, ::testing::Values(2, 3, 4, 5, 8, 15, 16, 31, 62, 100, 101, 256, 400));

}  // namespace
}  // namespace backplane::cpu
