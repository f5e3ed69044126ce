#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tenon {

/// Pixels row by row from the top, red, green and blue.
struct Image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> rgb;
};

using ByteSpan = std::span<const std::uint8_t>;

/// Decodes an encoded image, whose format its first bytes tell: BMP, PNM, and by their libraries
/// JPEG, PNG, TIFF, WebP and JPEG 2000. Transparency is left out. Throws Error for data that is
/// damaged and for images too large, and Error (Unsupported) for other formats and rarer kinds of
/// these.
Image decode_image(ByteSpan data);

Image decode_bmp(ByteSpan data);
Image decode_jpeg(ByteSpan data);
Image decode_jpeg2000(ByteSpan data);
Image decode_pnm(ByteSpan data);
Image decode_png(ByteSpan data);
Image decode_tiff(ByteSpan data);
Image decode_webp(ByteSpan data);

/// An image of this size, black. Throws Error if no image should be that large.
Image blank_image(std::int64_t height, std::int64_t width);
/// `reason` is a library's own words; "" for none.
[[noreturn]] void damaged_image(std::string_view format, std::string_view reason = "");
[[noreturn]] void unsupported_image(std::string_view what);

/// Numbers at positions of a file; throws Error past its end.
class ImageReader {
 public:
  ImageReader(ByteSpan data, std::string_view format, bool big_endian)
      : data_(data), format_(format), big_endian_(big_endian) {}
  std::uint32_t number(std::size_t position, std::size_t bytes) const;
  ByteSpan bytes(std::size_t position, std::size_t count) const;
  std::size_t size() const { return data_.size(); }

 private:
  ByteSpan data_;
  std::string_view format_;
  bool big_endian_;
};

}  // namespace tenon
