#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"
#include "ops/images/image.h"

namespace tenon::inline ops::image_decode_op {
namespace {

enum class PixelFormat : std::uint8_t { Rgb, Bgr, Grayscale };

struct Attrs {
  PixelFormat pixel_format = PixelFormat::Rgb;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  require_rank("image_decode", "x", x, 1);
  if (x.dtype != DType::U8) throw Error("image_decode: bytes are needed").expected("u8[n]").got(x);
  const std::int64_t channels = attrs.pixel_format == PixelFormat::Grayscale ? 1 : 3;
  return {DType::U8, {in.unknown(), in.unknown(), channels}, {}};
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Image image = decode_image(op.tensor("x").as<std::uint8_t>());
  const bool is_grey = attrs.pixel_format == PixelFormat::Grayscale;
  Tensor y(DType::U8, {image.height, image.width, is_grey ? 1 : 3});
  const std::span<std::uint8_t> pixels = y.as_mutable<std::uint8_t>();
  for (std::size_t k = 0; k < image.rgb.size(); k += 3) {
    const std::uint8_t* rgb = &image.rgb[k];
    if (is_grey) {
      // Luma of ITU-R BT.601 in fixed point with 16 fractional bits.
      pixels[k / 3] = static_cast<std::uint8_t>(
          (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
      continue;
    }
    for (std::size_t channel = 0; channel < 3; ++channel) {
      pixels[k + channel] = rgb[attrs.pixel_format == PixelFormat::Bgr ? 2 - channel : channel];
    }
  }
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_OP(image_decode) = OpSpec<Attrs>{
    .name = "image_decode",
    .summary =
        "the pixels [height, width, channel] of an encoded image: BMP, PNM, JPEG, PNG, TIFF, WebP "
        "or JPEG 2000",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"pixel_format", &Attrs::pixel_format, words("rgb bgr grayscale")}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it reads bytes"),
    .layout = logical_order(),
    .examples = {"-"},
};

}  // namespace tenon::inline ops::image_decode_op
