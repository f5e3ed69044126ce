#include "ops/image.h"

#include <cstdlib>

namespace tenon {
namespace {

struct Header {
  std::int64_t width, height;
  std::uint32_t bits, kind;
  std::size_t channels;
};

Header read_header(const ImageReader& file, std::size_t at) {
  Header header{file.number(at, 4), file.number(at + 4, 4), file.number(at + 8, 1),
                file.number(at + 9, 1), 0};
  header.channels = header.kind == 2 ? 3 : header.kind == 4 ? 2 : header.kind == 6 ? 4 : 1;
  const bool is_known = header.kind == 0 || header.kind == 2 || header.kind == 3 ||
                        header.kind == 4 || header.kind == 6;
  if (!is_known || header.bits != 8) unsupported_image("a PNG without 8 bits a sample");
  if (file.number(at + 12, 1) != 0) unsupported_image("an interlaced PNG");
  return header;
}

// The byte that a line's filter predicts from its neighbours to the left, above, and both.
std::uint8_t predicted(std::uint8_t filter, int left, int above, int corner) {
  switch (filter) {
    case 0:
      return 0;
    case 1:
      return static_cast<std::uint8_t>(left);
    case 2:
      return static_cast<std::uint8_t>(above);
    case 3:
      return static_cast<std::uint8_t>((left + above) / 2);
    case 4:
      break;
    default:
      damaged_image("PNG");
  }
  const int guess = left + above - corner;
  const int to_left = std::abs(guess - left), to_above = std::abs(guess - above);
  const int to_corner = std::abs(guess - corner);
  if (to_left <= to_above && to_left <= to_corner) return static_cast<std::uint8_t>(left);
  return static_cast<std::uint8_t>(to_above <= to_corner ? above : corner);
}

// Undoes the filters in place; each line follows one byte that names its own.
void unfilter(std::vector<std::uint8_t>& lines, std::size_t height, std::size_t stride,
              std::size_t channels) {
  for (std::size_t row = 0; row < height; ++row) {
    std::uint8_t* line = &lines[row * (stride + 1) + 1];
    const std::uint8_t* before = row > 0 ? line - stride - 1 : nullptr;
    for (std::size_t k = 0; k < stride; ++k) {
      const int left = k >= channels ? line[k - channels] : 0;
      const int above = before ? before[k] : 0;
      const int corner = before && k >= channels ? before[k - channels] : 0;
      line[k] = static_cast<std::uint8_t>(line[k] + predicted(line[-1], left, above, corner));
    }
  }
}

}  // namespace

Image decode_png(ByteSpan data) {
  const ImageReader file(data, "PNG", true);
  const Header header = read_header(file, 16);
  Image image = blank_image(header.height, header.width);
  std::vector<std::uint8_t> compressed;
  ByteSpan palette;
  for (std::size_t at = 8; at + 8 <= file.size();) {
    const std::uint32_t length = file.number(at, 4), kind = file.number(at + 4, 4);
    const ByteSpan content = file.bytes(at + 8, length);
    if (kind == 0x49444154)
      compressed.insert(compressed.end(), content.begin(), content.end());  // IDAT
    if (kind == 0x504C5445) palette = content;                              // PLTE
    at += std::size_t{length} + 12;
  }
  const auto height = static_cast<std::size_t>(header.height);
  const std::size_t stride = static_cast<std::size_t>(header.width) * header.channels;
  std::vector<std::uint8_t> lines = inflate(compressed, height * (stride + 1));
  if (lines.size() != height * (stride + 1)) damaged_image("PNG");
  unfilter(lines, height, stride, header.channels);
  for (std::size_t row = 0; row < height; ++row) {
    for (std::size_t column = 0; column < static_cast<std::size_t>(header.width); ++column) {
      const std::uint8_t* pixel = &lines[row * (stride + 1) + 1 + column * header.channels];
      std::uint8_t* target =
          &image.rgb[(row * static_cast<std::size_t>(header.width) + column) * 3];
      if (header.kind == 3) {
        const std::size_t entry = std::size_t{pixel[0]} * 3;
        if (entry + 3 > palette.size()) damaged_image("PNG");
        pixel = &palette[entry];
      }
      const bool is_grey = header.kind == 0 || header.kind == 4;
      for (std::size_t k = 0; k < 3; ++k) target[k] = pixel[is_grey ? 0 : k];
    }
  }
  return image;
}

}  // namespace tenon
