#include "ops/image_planes.h"

#include <algorithm>

namespace tenon {
namespace {

// 16 binary places.
int scaled(double factor, int value) {
  return static_cast<int>(factor * 65536 + (factor < 0 ? -0.5 : 0.5)) * value;
}

std::uint8_t clamped(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

}  // namespace

SamplePlane SamplePlane::cropped(std::int64_t height, std::int64_t width) const {
  SamplePlane part(std::min(height, height_), std::min(width, width_));
  for (std::int64_t row = 0; row < part.height_; ++row) {
    for (std::int64_t column = 0; column < part.width_; ++column)
      part.set(row, column, at(row, column));
  }
  return part;
}

SamplePlane SamplePlane::widened(std::int64_t height, std::int64_t width, std::int64_t down,
                                 std::int64_t across) const {
  SamplePlane wide(height, width);
  const bool is_smooth = across == 2 && down <= 2 && width_ > 2;
  for (std::int64_t row = 0; row < height; ++row) {
    const std::int64_t own_row = std::min(row / down, height_ - 1);
    const std::int64_t near_row =
        down == 2 ? std::clamp<std::int64_t>(own_row + (row % 2 == 0 ? -1 : 1), 0, height_ - 1)
                  : own_row;
    // Three parts of the nearer row, one of the farther; four of the only one.
    const auto blended = [&](std::int64_t column) {
      return 3 * at(own_row, column) + at(near_row, column);
    };
    for (std::int64_t column = 0; column < width; ++column) {
      const std::int64_t own = std::min(column / across, width_ - 1);
      if (!is_smooth) {
        wide.set(row, column, at(own_row, own));
        continue;
      }
      const std::int64_t near =
          std::clamp<std::int64_t>(own + (column % 2 == 0 ? -1 : 1), 0, width_ - 1);
      const int total = 3 * blended(own) + blended(near);
      const int rounding = down == 2 ? (column % 2 == 0 ? 8 : 7) : (column % 2 == 0 ? 4 : 8);
      wide.set(row, column, static_cast<std::uint8_t>((total + rounding) / 16));
    }
  }
  return wide;
}

void put_rgb(std::uint8_t* rgb, int luma, int blue_chroma, int red_chroma) {
  const int half = 1 << 15;
  rgb[0] = clamped(luma + ((scaled(1.402, red_chroma) + half) >> 16));
  rgb[1] = clamped(
      luma + ((scaled(-0.344136286, blue_chroma) + scaled(-0.714136286, red_chroma) + half) >> 16));
  rgb[2] = clamped(luma + ((scaled(1.772, blue_chroma) + half) >> 16));
}

}  // namespace tenon
