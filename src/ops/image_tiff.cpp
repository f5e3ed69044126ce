#include "ops/image.h"

#include <algorithm>
#include <map>

namespace tenon {
namespace {

enum Tag : std::uint32_t {
  kWidth = 256,
  kHeight = 257,
  kBits = 258,
  kCompression = 259,
  kPhotometric = 262,
  kStripOffsets = 273,
  kSamples = 277,
  kRowsPerStrip = 278,
  kPlanar = 284,
  kTileWidth = 322,
};

using Values = std::vector<std::uint32_t>;

/// The first directory of the file: numbers by tag.
class Directory {
 public:
  explicit Directory(const ImageReader& file) {
    const std::size_t start = file.number(4, 4);
    const std::uint32_t count = file.number(start, 2);
    for (std::uint32_t entry = 0; entry < count; ++entry) {
      const std::size_t at = start + 2 + std::size_t{entry} * 12;
      const std::uint32_t type = file.number(at + 2, 2), size = file.number(at + 4, 4);
      const std::size_t bytes = type == 3 ? 2 : type == 4 ? 4 : type == 1 ? 1 : 0;
      if (bytes == 0 || size > file.size()) continue;
      const std::size_t place = bytes * size <= 4 ? at + 8 : file.number(at + 8, 4);
      Values& values = tags_[file.number(at, 2)];
      for (std::size_t k = 0; k < size; ++k)
        values.push_back(file.number(place + k * bytes, bytes));
    }
  }
  Values all(Tag tag) const {
    const auto found = tags_.find(tag);
    return found == tags_.end() ? Values{} : found->second;
  }
  std::uint32_t first(Tag tag, std::uint32_t otherwise) const {
    const Values values = all(tag);
    return values.empty() ? otherwise : values.front();
  }

 private:
  std::map<std::uint32_t, Values> tags_;
};

}  // namespace

Image decode_tiff(ByteSpan data) {
  const ImageReader file(data, "TIFF", !data.empty() && data[0] == 'M');
  if (file.number(2, 2) != 42) unsupported_image("this kind of TIFF");
  const Directory tags(file);
  const std::uint32_t samples = tags.first(kSamples, 1), photometric = tags.first(kPhotometric, 1);
  const Values bits = tags.all(kBits);
  const bool is_grey = photometric <= 1 && samples >= 1;
  const bool is_rgb = photometric == 2 && samples >= 3;
  if (tags.first(kCompression, 1) != 1 || tags.first(kPlanar, 1) != 1 ||
      tags.first(kTileWidth, 0) != 0 ||
      !std::all_of(bits.begin(), bits.end(), [](std::uint32_t count) { return count == 8; }) ||
      bits.empty() || !(is_grey || is_rgb) || samples > 8) {
    unsupported_image("this kind of TIFF");
  }
  Image image = blank_image(tags.first(kHeight, 0), tags.first(kWidth, 0));
  const Values strips = tags.all(kStripOffsets);
  const std::int64_t rows_per_strip = tags.first(kRowsPerStrip, 0xFFFFFFFFU);
  const std::size_t stride = static_cast<std::size_t>(image.width) * samples;
  for (std::int64_t row = 0; row < image.height; ++row) {
    const auto strip = static_cast<std::size_t>(rows_per_strip > 0 ? row / rows_per_strip : 0);
    if (rows_per_strip < 1 || strip >= strips.size()) damaged_image("TIFF");
    const auto within = static_cast<std::size_t>(row % rows_per_strip);
    const ByteSpan line = file.bytes(strips[strip] + within * stride, stride);
    for (std::int64_t column = 0; column < image.width; ++column) {
      const ByteSpan pixel = line.subspan(static_cast<std::size_t>(column) * samples, samples);
      std::uint8_t* target = &image.rgb[static_cast<std::size_t>(row * image.width + column) * 3];
      for (std::size_t k = 0; k < 3; ++k) {
        const std::uint8_t value = pixel[is_rgb ? k : 0];
        target[k] = photometric == 0 ? static_cast<std::uint8_t>(255 - value) : value;
      }
    }
  }
  return image;
}

}  // namespace tenon
