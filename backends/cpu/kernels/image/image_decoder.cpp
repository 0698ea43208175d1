// SPDX-License-Identifier: Apache-2.0
// ImageDecoder: decodes an image to a tensor [height, width, channels].
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/image/codecs/codec.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

image::Encoded bytes_in(const Tensor& tensor) {
  return {tensor.as<uint8_t>(), static_cast<size_t>(tensor.shape.elements())};
}

const image::Codec* codec_of(image::Encoded bytes) {
  for (const image::Codec* codec : image::codecs())
    if (codec->matches(bytes)) return codec;
  return nullptr;
}

std::string format_names() {
  std::string names;
  for (const image::Codec* codec : image::codecs()) names += std::string(names.empty() ? "" : ", ") + codec->name;
  return names;
}

std::string about(const image::Codec& codec, const std::string& problem) {
  return std::string("the ") + codec.name + " image cannot be decoded: " + problem;
}

// Returns the luma of a pixel by ITU-R BT.601, in fixed point.
uint8_t grey(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

std::optional<std::string> decode(const std::string& format, const image::Codec& codec, image::Size size, Tensors in,
                                  Tensors out) {
  const int64_t pixels = size.width * size.height;
  auto* target = out[0].as<uint8_t>();
  require_memory(pixels, 3 + codec.pixel_bytes);
  std::vector<uint8_t> storage(format == "Grayscale" ? static_cast<size_t>(pixels) * 3 : 0);
  uint8_t* rgb = storage.empty() ? target : storage.data();
  Pace pace;
  image::Stop stop([&](int64_t work) { pace.spend(work); });
  if (image::Problem problem = codec.decode(bytes_in(in[0]), size, rgb, stop)) return about(codec, *problem);
  if (format == "RGB") return std::nullopt;
  const bool is_grey = format == "Grayscale";
  parallel(pixels, kCheapGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (is_grey)
        target[i] = grey(rgb + i * 3);
      else
        std::swap(rgb[i * 3], rgb[i * 3 + 2]);
    }
  });
  return std::nullopt;
}

Plan plan(const std::string& format, const Tensor& encoded) {
  if (encoded.shape.rank() != 1)
    return fail("the encoded image must have one dimension, but has extents " + to_string(encoded.shape));
  if (!known(encoded)) return deferred();
  const image::Encoded bytes = bytes_in(encoded);
  const image::Codec* codec = codec_of(bytes);
  if (codec == nullptr) return fail("the format of the image is not recognized; this build reads " + format_names());
  if (codec->open != nullptr) {
    if (const image::Problem& problem = codec->open()) return fail(about(*codec, *problem), BP_UNSUPPORTED);
  }
  image::Size size;
  if (image::Problem problem = codec->size(bytes, &size)) return fail(about(*codec, *problem));
  if (size.width < 1 || size.height < 1 || size.width > image::kMaxPixels / size.height)
    return fail(about(*codec, "the image has " + std::to_string(size.width) + "×" + std::to_string(size.height) +
                                  " pixels; 1 to " + std::to_string(image::kMaxPixels) + " are supported"));
  const Shape shape{size.height, size.width, format == "Grayscale" ? 1 : 3};
  return make_plan({shape}, [=](Tensors in, Tensors out) { return decode(format, *codec, size, in, out); });
}

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 1, {just(BP_DTYPE_UINT8)}); !v) return v;
  return attribute_in(node, "pixel_format", "RGB", {"RGB", "BGR", "Grayscale"});
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([format = node.attr("pixel_format", "RGB")](Tensors inputs) { return plan(format, inputs[0]); });
}

}  // namespace

[[gnu::cold]] std::span<const Row> image_decoder_rows() {
  static constexpr Row kRows[] = {
      {"", "ImageDecoder", 20, supports, create},
  };
  return kRows;
}

}  // namespace backplane::cpu
