// SPDX-License-Identifier: Apache-2.0
// RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial, Dropout. Random number i is a hash of the seed
// and i, so it does not depend on the number of threads. Without a seed attribute, each run uses a new seed.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

// ---- The generator: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) ----------

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::optional<float> seed) : seed_(seed ? mixed(std::bit_cast<uint32_t>(*seed)) : fresh()) {}

  double uniform(int64_t i) const {  // in [0, 1)
    return static_cast<double>(mixed(seed_ + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(i + 1)) >> 11) * 0x1p-53;
  }
  double normal(int64_t i) const {  // by the Box-Muller transform
    return std::sqrt(-2 * std::log(1 - uniform(2 * i))) * std::cos(2 * std::numbers::pi * uniform(2 * i + 1));
  }

 private:
  static uint64_t fresh() {
    static std::atomic<uint64_t> runs{
        static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())};
    return mixed(runs.fetch_add(1));
  }
  uint64_t seed_;
};

std::optional<float> seed_of(const Node& node) {
  if (node.find("seed") == nullptr) return std::nullopt;
  return node.attr("seed", 0.0f);
}

// ---- RandomNormal, RandomUniform and their Like forms --------------------------------------------------------------

struct Distribution {
  bool normal;
  double base, range;  // mean and standard deviation, or lower bound and width
  std::optional<float> seed;

  Distribution(const Node& node, bool is_normal) : normal(is_normal), seed(seed_of(node)) {
    base = is_normal ? node.attr("mean", 0.0f) : node.attr("low", 0.0f);
    range = is_normal ? node.attr("scale", 1.0f) : double{node.attr("high", 1.0f)} - base;
  }
};

Plan plan_random(const Distribution& d, bp_dtype_t dtype, const Shape& shape) {
  return make_plan({shape},
                   [=](Tensors, Tensors out) {
                     const Random random(d.seed);
                     dispatch<Floats>(dtype, [&](auto tag) {
                       using T = typename decltype(tag)::type;
                       parallel(shape.elements(), kMathGrain, [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i)
                           out[0].as<T>()[i] = static_cast<T>(static_cast<compute_t<T>>(
                               d.base + d.range * (d.normal ? random.normal(i) : random.uniform(i))));
                       });
                     });
                   },
                   {.pure = d.seed.has_value()});
}

Verdict supports_random(const Node& node) {
  if (node.ints("shape").size() > BP_MAX_RANK)
    return no(BP_REASON_SHAPE, "the rank of the result exceeds the maximum of 32");
  return returns_type(node, "dtype", node.attr("dtype", int64_t{BP_DTYPE_FLOAT}), kFloatTypes);
}

template <bool kNormal>
std::unique_ptr<Kernel> create_random(const Node& node) {
  return make_kernel([d = Distribution(node, kNormal), shape = Shape(node.ints("shape")),
                      dtype = static_cast<bp_dtype_t>(node.attr("dtype", int64_t{BP_DTYPE_FLOAT}))](Tensors) {
    return plan_random(d, dtype, shape);
  });
}

int64_t like_dtype(const Node& node) {
  return node.attr("dtype", int64_t{node.input_type(0).dtype});
}

Verdict supports_like(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {kByteTypes}); !verdict) return verdict;
  return returns_type(node, "dtype", like_dtype(node), kFloatTypes);
}

template <bool kNormal>
std::unique_ptr<Kernel> create_like(const Node& node) {
  return make_kernel([d = Distribution(node, kNormal), dtype = static_cast<bp_dtype_t>(like_dtype(node))](
                         Tensors inputs) { return plan_random(d, dtype, inputs[0].shape); });
}

// ---- Bernoulli, Multinomial ----------------------------------------------------------------------------------------

Verdict supports_bernoulli(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {kFloatTypes}); !verdict) return verdict;
  return returns_type(node, "dtype", like_dtype(node), set_of(NumbersAndBool{}));
}

std::unique_ptr<Kernel> create_bernoulli(const Node& node) {
  return make_kernel([seed = seed_of(node), dtype = static_cast<bp_dtype_t>(like_dtype(node))](Tensors inputs) {
    return make_plan({inputs[0].shape},
                     [=](Tensors in, Tensors out) {
                       const Random random(seed);
                       dispatch<Floats>(in[0].dtype, [&](auto from) {
                         using P = typename decltype(from)::type;
                         dispatch<NumbersAndBool>(dtype, [&](auto to) {
                           using T = typename decltype(to)::type;
                           parallel(in[0].shape.elements(), kMathGrain, [&](int64_t begin, int64_t end) {
                             for (int64_t i = begin; i < end; ++i)
                               out[0].as<T>()[i] = static_cast<T>(static_cast<compute_t<T>>(
                                   random.uniform(i) < static_cast<double>(in[0].as<P>()[i])));
                           });
                         });
                       });
                     },
                     {.pure = seed.has_value()});
  });
}

Verdict supports_multinomial(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {kFloatTypes}); !verdict) return verdict;
  if (const int64_t size = node.attr("sample_size", int64_t{1}); size < 0)
    return no(BP_REASON_ATTRIBUTE, "sample_size is " + std::to_string(size) + "; it must not be negative");
  return returns_type(node, "dtype", node.attr("dtype", int64_t{BP_DTYPE_INT32}), kIndexTypes);
}

std::unique_ptr<Kernel> create_multinomial(const Node& node) {
  return make_kernel([seed = seed_of(node), samples = node.attr("sample_size", int64_t{1})](Tensors inputs) -> Plan {
    const Shape shape = inputs[0].shape;
    if (shape.rank() != 2 || shape[1] < 1)
      return fail("the input of Multinomial must be [batch, classes], but has shape " + to_string(shape));
    return make_plan({{shape[0], samples}},
                     [=](Tensors in, Tensors out) {
                       const Random random(seed);
                       dispatch<Floats>(in[0].dtype, [&](auto tag) {
                         using T = typename decltype(tag)::type;
                         std::vector<double> cumulative(static_cast<size_t>(shape[1]));
                         Pace pace;
                         for (int64_t b = 0; b < shape[0]; ++b) {
                           pace.spend(8 * (shape[1] + samples));
                           const T* logits = in[0].as<T>() + b * shape[1];
                           double largest = static_cast<double>(logits[0]), sum = 0;
                           for (int64_t c = 1; c < shape[1]; ++c)
                             largest = std::max(largest, static_cast<double>(logits[c]));
                           for (int64_t c = 0; c < shape[1]; ++c)
                             cumulative[static_cast<size_t>(c)] = sum +=
                                 std::exp(static_cast<double>(logits[c]) - largest);
                           for (int64_t i = b * samples; i < (b + 1) * samples; ++i) {
                             const auto position =
                                 std::ranges::upper_bound(cumulative, random.uniform(i) * sum) - cumulative.begin();
                             const int64_t chosen = std::min<int64_t>(position, shape[1] - 1);
                             if (out[0].dtype == BP_DTYPE_INT32)
                               out[0].as<int32_t>()[i] = static_cast<int32_t>(chosen);
                             else
                               out[0].as<int64_t>()[i] = chosen;
                           }
                         }
                       });
                     },
                     {.pure = seed.has_value()});
  });
}

// ---- Dropout: unless in training mode, copies the data and sets the whole mask to true -----------------------------

Verdict supports_dropout(const Node& node) {
  return accepts(node, 1, {kFloatTypes, kFloatTypes, just(BP_DTYPE_BOOL)});
}

template <class T>
void drop(const Tensor& data, const Tensor& result, Bool* mask, double ratio, const Random& random) {
  const double scale = ratio < 1 ? 1 / (1 - ratio) : 0;
  parallel(data.shape.elements(), kMathGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool keep = random.uniform(i) >= ratio;
      if (mask != nullptr) mask[i] = Bool(keep);
      result.as<T>()[i] =
          static_cast<T>(static_cast<compute_t<T>>(keep ? static_cast<double>(data.as<T>()[i]) * scale : 0));
    }
  });
}

std::unique_ptr<Kernel> create_dropout(const Node& node) {
  std::optional<float> seed;
  if (node.find("seed") != nullptr) seed = static_cast<float>(node.attr("seed", int64_t{0}));
  return make_kernel([seed, masked = node.has_output(1)](Tensors inputs) -> Plan {
    const Tensor mode = at(inputs, 2);
    const Shape shape = inputs[0].shape;
    for (size_t slot : {1, 2})
      if (const Tensor input = at(inputs, slot); input.present() && input.shape.elements() != 1)
        return fail("ratio and training_mode must be scalars, but input " + std::to_string(slot) + " has shape " +
                    to_string(input.shape));
    const bool passes = !mode.present() || (known(mode) && scalar(mode) == 0);
    Plan plan = make_plan({shape, shape},
                          [seed](Tensors in, Tensors out) {
                            const Tensor ratio_input = at(in, 1), training = at(in, 2);
                            const double ratio =
                                std::clamp(ratio_input.data == nullptr ? 0.5 : scalar(ratio_input), 0.0, 1.0);
                            Bool* mask = at(out, 1).as<Bool>();
                            if (training.data != nullptr && scalar(training) != 0 && ratio > 0) {
                              dispatch<Floats>(in[0].dtype, [&](auto tag) {
                                drop<typename decltype(tag)::type>(in[0], out[0], mask, ratio, Random(seed));
                              });
                              return;
                            }
                            const int64_t n = in[0].shape.elements();
                            if (out[0].data != in[0].data && n > 0)
                              std::memcpy(out[0].data, in[0].data, static_cast<size_t>(bytes_of(in[0].dtype, n)));
                            if (mask != nullptr) std::fill_n(mask, n, Bool(true));
                          },
                          {.inplace = 0, .alias = passes && !masked ? 0 : -1, .pure = passes || seed.has_value()});
    if (passes && !masked) keep_format(plan, inputs);
    return plan;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> random_rows() {
  static constexpr Row kRows[] = {
      {"", "RandomNormal", 1, supports_random, create_random<true>},
      {"", "RandomUniform", 1, supports_random, create_random<false>},
      {"", "RandomNormalLike", 1, supports_like, create_like<true>},
      {"", "RandomUniformLike", 1, supports_like, create_like<false>},
      {"", "Bernoulli", 15, supports_bernoulli, create_bernoulli},
      {"", "Multinomial", 7, supports_multinomial, create_multinomial},
      {"", "Dropout", 12, supports_dropout, create_dropout},
  };
  return kRows;
}

}  // namespace backplane::cpu
