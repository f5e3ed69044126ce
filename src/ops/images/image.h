#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tenon::inline ops {

/// Interleaved RGB pixels, row by row from the top.
struct Image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> rgb;
};

using ByteSpan = std::span<const std::uint8_t>;

/// Decodes an image in the format that its first bytes identify: BMP, PNM, and JPEG, PNG, TIFF,
/// WebP and JPEG 2000 by their libraries. Drops transparency. Throws Error for damaged data and
/// oversized images, and Error (Unsupported) for other formats and rare variants.
Image decode_image(ByteSpan data);

Image decode_bmp(ByteSpan data);
Image decode_jpeg(ByteSpan data);
Image decode_jpeg2000(ByteSpan data);
Image decode_pnm(ByteSpan data);
Image decode_png(ByteSpan data);
Image decode_tiff(ByteSpan data);
Image decode_webp(ByteSpan data);

/// Returns a black image of this size. Throws Error if it exceeds the size limit.
Image blank_image(std::int64_t height, std::int64_t width);
/// `reason` is the library's message; "" without one.
[[noreturn]] void damaged_image(std::string_view format, std::string_view reason = "");
[[noreturn]] void unsupported_image(std::string_view what);

/// Reads numbers at positions of a file. Throws Error past its end.
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

}  // namespace tenon::inline ops
