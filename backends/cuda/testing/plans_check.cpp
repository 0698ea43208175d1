// SPDX-License-Identifier: Apache-2.0
// plans_check FILE…: lets the real cuDNN make plans of typical convolutions for GPUs that are described by JSON files,
// which needs no GPU, and prints how many plans it finds. Exit status: 0 if each convolution has a plan, 1 if not, 77
// if there is no cuDNN 9.8 or later.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "backplane/sdk/fence.hpp"
#include "backplane/sdk/tables.hpp"
#include "driver/convolution_plan.h"

namespace backplane::cuda {
namespace {

constexpr int kSkipped = 77;
constexpr uint64_t kWorkspace = uint64_t{256} << 20;

gpu::ConvolutionProblem square(int64_t channels, int64_t size, int64_t maps, int64_t kernel, int64_t stride,
                               int64_t groups = 1) {
  gpu::ConvolutionProblem p{.batch = 1, .channels = channels, .maps = maps, .groups = groups};
  const int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  p.window = {.dims = 2,
              .in = {1, size, size},
              .out = {1, out, out},
              .kernel = {1, kernel, kernel},
              .stride = {1, stride, stride},
              .begin = {0, pad, pad},
              .end = {0, pad, pad}};
  return p;
}

// The layers of a ResNet-50, depthwise ones of a MobileNet, grouped ones of a ResNeXt, and layers of one and three
// dimensions.
std::vector<gpu::ConvolutionProblem> layers() {
  std::vector<gpu::ConvolutionProblem> all{square(3, 224, 64, 7, 2)};
  for (const int64_t stage : {0, 1, 2, 3}) {
    const int64_t width = 64 << stage, size = 56 >> stage, before = stage == 0 ? 64 : width * 2;
    all.push_back(square(before, stage == 0 ? size : size * 2, width, 1, 1));
    all.push_back(square(width, size, width, 3, 1));
    all.push_back(square(width, size, width * 4, 1, 1));
    all.push_back(square(width * 4, size, width, 1, 1));
    if (stage == 0) continue;
    all.push_back(square(width, size * 2, width, 3, 2));
    all.push_back(square(before, size * 2, width * 4, 1, 2));
  }
  for (const int64_t stride : {1, 2}) all.push_back(square(96, 56, 96, 3, stride, 96));
  all.push_back(square(128, 56, 128, 3, 1, 32));
  gpu::ConvolutionProblem line{.batch = 1, .channels = 80, .maps = 384};
  line.window = {
      .dims = 1, .in = {1, 1, 3000}, .out = {1, 1, 3000}, .kernel = {1, 1, 3}, .begin = {0, 0, 1}, .end = {0, 0, 1}};
  all.push_back(line);
  gpu::ConvolutionProblem volume{.batch = 1, .channels = 16, .maps = 32};
  volume.window = {.dims = 3, .in = {8, 28, 28}, .out = {6, 26, 26}, .kernel = {3, 3, 3}};
  all.push_back(volume);
  return all;
}

struct Variant {
  const char* name;
  bool has_c, has_bias, relu;
};
constexpr Variant kVariants[] = {{"alone", false, false, false},
                                 {"bias", false, true, false},
                                 {"bias relu", false, true, true},
                                 {"c bias", true, true, false},
                                 {"c bias relu", true, true, true}};
struct Type {
  const char* name;
  bp_dtype_t dtype;
  uint32_t compute_types;
};
constexpr Type kTypes[] = {{"fp32", BP_DTYPE_FLOAT, 0},
                           {"fp32 in TF32", BP_DTYPE_FLOAT, BP_COMPUTE_TF32},
                           {"fp16", BP_DTYPE_FLOAT16, 0},
                           {"bf16", BP_DTYPE_BFLOAT16, 0}};

// The compute capability in a description, times 10: 75 for 7.5.
int capability_of(const std::string& json) {
  const std::string key = "\"deviceVer\": ";
  const size_t at = json.find(key);
  return at == std::string::npos ? 0 : std::atoi(json.c_str() + at + key.size()) / 10;
}

// Returns how many convolutions have no plan.
int check_device(const char* path) {
  std::ifstream in(path);
  const std::string json{std::istreambuf_iterator<char>(in), {}};
  const dnn::Descriptor device = described_device(json);
  const PlanTarget target{.device = &device};
  std::printf("%s\n", path);
  int missing = 0;
  for (const Type& type : kTypes) {
    constexpr int kFirstWithBf16 = 80;
    if (type.dtype == BP_DTYPE_BFLOAT16 && capability_of(json) < kFirstWithBf16) continue;
    for (const Variant& variant : kVariants) {
      const auto begin = std::chrono::steady_clock::now();
      size_t convolutions = 0, planned = 0, plans = 0;
      uint64_t workspace = 0;
      std::string why;
      for (gpu::ConvolutionProblem p : layers()) {
        p.dtype = type.dtype;
        p.compute_types = type.compute_types;
        p.has_c = variant.has_c;
        p.has_bias = variant.has_bias;
        p.relu = variant.relu;
        ++convolutions;
        const auto failure = sdk::caught([&] {
          const auto found = convolution_plans(target, p, 4, kWorkspace, 16);
          ++planned;
          plans += found.size();
          for (const ConvolutionPlan& each : found) workspace = std::max(workspace, each.workspace_bytes);
        });
        if (failure) why = failure->text;
      }
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
      std::printf("  %-12s %-11s %2zu of %zu planned, %.1f plans each, workspace up to %5.1f MB, %.1f ms each%s%s\n",
                  type.name, variant.name, planned, convolutions,
                  static_cast<double>(plans) / static_cast<double>(std::max<size_t>(planned, 1)),
                  static_cast<double>(workspace) / 1e6, time.count() / static_cast<double>(convolutions),
                  why.empty() ? "" : "; ", why.c_str());
      missing += static_cast<int>(convolutions - planned);
    }
  }
  return missing;
}

int run(int count, char** files) {
  if constexpr (sdk::kSanitizer != BP_SANITIZER_NONE) {
    std::printf("skipped: cuDNN does not start with a sanitizer\n");
    return kSkipped;
  }
  if (const auto failure = sdk::caught([] { dnn::functions(); })) {
    std::printf("skipped: %s\n", failure->text.c_str());
    return kSkipped;
  }
  constexpr size_t kFirstWithDescriptions = 90800;
  if (dnn::functions().GetVersion() < kFirstWithDescriptions) {
    std::printf("skipped: cuDNN %zu cannot plan without a device\n", dnn::functions().GetVersion());
    return kSkipped;
  }
  int missing = 0;
  const auto failure = sdk::caught([&] {
    for (int i = 1; i < count; ++i) missing += check_device(files[i]);
  });
  if (failure) std::printf("%s\n", failure->text.c_str());
  return failure || missing != 0 ? 1 : 0;
}

}  // namespace
}  // namespace backplane::cuda

int main(int count, char** files) {
  return backplane::cuda::run(count, files);
}
