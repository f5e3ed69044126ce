#include "models/image_input.h"

#include "base/error.h"
#include "frontends/mapped_file.h"
#include "ops/images/image.h"

#include <algorithm>
#include <cmath>

namespace tenon::models {
namespace {

struct PixelLayout {
  std::int64_t channels = 0, height = 0, width = 0;
  bool has_channels_last = false;
};

PixelLayout places_of(const Shape& shape, const std::string& path) {
  Shape image = shape;
  if (image.size() == 4 && image.front() == 1) image.erase(image.begin());
  // The axis of extent 3 is the channel axis; without one, or if both ends qualify, it is the
  // first.
  if (image.size() == 3) {
    const PixelLayout first{image[0], image[1], image[2], false},
        last{image[2], image[0], image[1], true};
    if (image[0] == 3) return first;
    if (image[2] == 3) return last;
    if (image[0] == 1) return first;
    if (image[2] == 1) return last;
  }
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  throw Error("an image does not fit the input", ErrorKind::Usage)
      .at(path)
      .expected("[1, C, H, W] or [1, H, W, C] with one or three channels")
      .got("[", text, "]")
      .hint("--shapes or --batch=1 fix extents that are symbols");
}

double channel(const std::vector<double>& settings, std::int64_t c, const char* name) {
  if (settings.size() != 1 && settings.size() != 3) {
    throw Error(concat("--", name, " takes one number or three"), ErrorKind::Usage)
        .got(settings.size());
  }
  return settings[settings.size() == 1 ? 0 : static_cast<std::size_t>(c)];
}

// Bilinear interpolation: samples a channel of the image at the centre of a pixel of another
// raster.
double sample(const Image& image, double y, double x, std::int64_t c) {
  const auto at = [&](std::int64_t row, std::int64_t column) {
    row = std::clamp<std::int64_t>(row, 0, image.height - 1);
    column = std::clamp<std::int64_t>(column, 0, image.width - 1);
    return static_cast<double>(
        image.rgb[static_cast<std::size_t>((row * image.width + column) * 3 + c)]);
  };
  const double top = std::floor(y), left = std::floor(x), down = y - top, right = x - left;
  const auto row = static_cast<std::int64_t>(top), column = static_cast<std::int64_t>(left);
  return (at(row, column) * (1 - right) + at(row, column + 1) * right) * (1 - down) +
         (at(row + 1, column) * (1 - right) + at(row + 1, column + 1) * right) * down;
}

}  // namespace

bool is_image_file(const std::string& path) {
  static const std::vector<std::string> endings = {".jpg", ".jpeg", ".png", ".bmp",  ".ppm",
                                                   ".pgm", ".pnm",  ".tif", ".tiff", ".webp",
                                                   ".jp2", ".j2k",  ".gif"};
  std::string lower = path;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(endings,
                             [&](const std::string& ending) { return lower.ends_with(ending); });
}

Tensor read_image_input(const std::string& path, DType dtype, const Shape& shape,
                        const PixelSettings& settings) {
  const PixelLayout to = places_of(shape, path);
  const auto file = frontends::MappedFile::open(path);
  const auto bytes = file->bytes();
  const Image image = [&] {
    try {
      return decode_image({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    } catch (Error& error) {
      throw error.at(path);
    }
  }();
  Tensor made(dtype, shape);
  for (std::int64_t c = 0; c < to.channels; ++c) {
    const double mean = channel(settings.mean, c, "mean"),
                 scale = channel(settings.scale, c, "scale");
    for (std::int64_t y = 0; y < to.height; ++y) {
      const double from_y = (static_cast<double>(y) + 0.5) * static_cast<double>(image.height) /
                                static_cast<double>(to.height) -
                            0.5;
      for (std::int64_t x = 0; x < to.width; ++x) {
        const double from_x = (static_cast<double>(x) + 0.5) * static_cast<double>(image.width) /
                                  static_cast<double>(to.width) -
                              0.5;
        double value = 0;
        if (to.channels == 3) {
          value = sample(image, from_y, from_x, c);
        } else {  // the luma of ITU-R BT.601
          value = 0.299 * sample(image, from_y, from_x, 0) +
                  0.587 * sample(image, from_y, from_x, 1) +
                  0.114 * sample(image, from_y, from_x, 2);
        }
        value = (value - mean) * scale;
        if (!is_float(dtype)) value = std::nearbyint(value);
        const std::int64_t index = to.has_channels_last ? (y * to.width + x) * to.channels + c
                                                        : (c * to.height + y) * to.width + x;
        made.set_real(index, value);
      }
    }
  }
  return made;
}

}  // namespace tenon::models
