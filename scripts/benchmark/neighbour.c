// SPDX-License-Identifier: Apache-2.0
// Load for another core, or for the other hardware thread of a core, while a model is measured. Also measures the peak
// rate with which results are compared. Compiled and run by neighbour.py.
//
//   neighbour fma|l1 CORE         computes, or reads the L1 cache, on that core until it is killed
//   neighbour peak BITS SECONDS   prints multiply-adds per second of one core, with vectors of 128, 256 or 512 bits
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHAINS 12  // independent sums: more than a multiply-add's latency in cycles times two units

// `rounds` times CHAINS multiply-adds of whole vectors.
#define MULTIPLY_ADDS(bits, features)                                                                             \
  __attribute__((target(features), optimize("O3"), noinline)) static float multiply_adds_##bits(int64_t rounds) { \
    typedef float Lanes __attribute__((vector_size(bits / 8)));                                                   \
    Lanes sums[CHAINS], factor = (Lanes){} + 0.5f;                                                                \
    for (int i = 0; i < CHAINS; ++i) sums[i] = factor * (float)i;                                                 \
    for (int64_t r = 0; r < rounds; ++r) {                                                                        \
      _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; ++i) sums[i] = sums[i] * factor + factor;              \
    }                                                                                                             \
    for (int i = 1; i < CHAINS; ++i) sums[0] += sums[i];                                                          \
    return sums[0][0];                                                                                            \
  }
MULTIPLY_ADDS(128, "avx2,fma")
MULTIPLY_ADDS(256, "avx2,fma")
MULTIPLY_ADDS(512, "avx512f")

__attribute__((target("avx2"), optimize("O3"), noinline)) static float read_all(const float* from, int64_t floats) {
  typedef float Lanes __attribute__((vector_size(32)));
  Lanes sums[4] = {};
  for (int64_t i = 0; i < floats; i += 32) {
    for (int k = 0; k < 4; ++k) sums[k] += *(const Lanes*)(from + i + 8 * k);
  }
  return sums[0][0] + sums[1][1] + sums[2][2] + sums[3][3];
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static volatile float sink;

int main(int count, char** words) {
  if (count == 4 && strcmp(words[1], "peak") == 0) {
    const int bits = atoi(words[2]);
    float (*run)(int64_t) = bits == 512 ? multiply_adds_512 : bits == 256 ? multiply_adds_256 : multiply_adds_128;
    const int64_t rounds = 100000;
    double best = 0;
    for (const double end = now() + atof(words[3]); now() < end;) {
      const double start = now();
      sink = run(rounds);
      const double rate = (double)rounds * CHAINS * (bits / 32) / (now() - start);
      if (rate > best) best = rate;
    }
    printf("%.4g\n", best);
    return 0;
  }
  if (count != 3 || (strcmp(words[1], "fma") != 0 && strcmp(words[1], "l1") != 0)) {
    fprintf(stderr, "usage: neighbour fma|l1 CORE, or neighbour peak BITS SECONDS\n");
    return 2;
  }
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(atoi(words[2]), &core);
  sched_setaffinity(0, sizeof core, &core);
  static float near[4096] __attribute__((aligned(64)));  // 16 KB
  for (;;) sink = words[1][0] == 'f' ? multiply_adds_256(100000) : read_all(near, 4096);
}
