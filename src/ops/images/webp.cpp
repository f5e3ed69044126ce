#include "ops/images/image.h"

#include <webp/decode.h>

namespace tenon::inline ops {

Image decode_webp(ByteSpan data) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data.data(), data.size(), &features) != VP8_STATUS_OK) damaged_image("WebP");
  if (features.has_animation != 0) unsupported_image("a moving WebP");
  Image image = blank_image(features.height, features.width);
  const auto stride = static_cast<int>(image.width) * 3;
  if (WebPDecodeRGBInto(data.data(), data.size(), image.rgb.data(), image.rgb.size(), stride) ==
      nullptr) {
    damaged_image("WebP");
  }
  return image;
}

}  // namespace tenon::inline ops
