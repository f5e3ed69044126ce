#include "ops/images/image.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <string>

namespace tenon::inline ops {
namespace {

struct PngSource {
  ByteSpan data;
  std::size_t at = 0;
  std::string reason;
};

void read_bytes(png_structp reader, png_bytep target, std::size_t count) {
  auto* source = static_cast<PngSource*>(png_get_io_ptr(reader));
  if (count > source->data.size() - source->at) png_error(reader, "it ends too early");
  std::copy_n(source->data.begin() + static_cast<std::ptrdiff_t>(source->at), count, target);
  source->at += count;
}

[[noreturn]] void give_up(png_structp reader, png_const_charp reason) {
  static_cast<PngSource*>(png_get_error_ptr(reader))->reason = reason;
  png_longjmp(reader, 1);
}
void ignore(png_structp, png_const_charp) {}

// Converts every PNG variant to 8-bit RGB.
bool read_header(png_structp reader, png_infop info, PngSource& source) {
  if (setjmp(png_jmpbuf(reader)) != 0) return false;
  png_set_read_fn(reader, &source, read_bytes);
  png_set_user_limits(reader, 1 << 24, 1 << 24);
  png_set_chunk_malloc_max(reader, 1 << 24);
  png_set_chunk_cache_max(reader, 128);
  png_read_info(reader, info);
  png_set_expand(reader);
  png_set_strip_16(reader);
  png_set_strip_alpha(reader);
  png_set_gray_to_rgb(reader);
  png_set_interlace_handling(reader);
  png_read_update_info(reader, info);
  return true;
}

bool read_lines(png_structp reader, png_infop info, png_bytep* lines) {
  if (setjmp(png_jmpbuf(reader)) != 0) return false;
  png_read_image(reader, lines);
  png_read_end(reader, info);
  return true;
}

}  // namespace

Image decode_png(ByteSpan data) {
  PngSource source{data, 0, {}};
  png_structp reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, give_up, ignore);
  if (reader == nullptr) throw std::bad_alloc();
  png_infop info = png_create_info_struct(reader);
  const struct Guard {
    png_structp& reader;
    png_infop& info;
    ~Guard() { png_destroy_read_struct(&reader, &info, nullptr); }
  } guard{reader, info};
  if (info == nullptr) throw std::bad_alloc();
  if (!read_header(reader, info, source)) damaged_image("PNG", source.reason);
  Image image = blank_image(png_get_image_height(reader, info), png_get_image_width(reader, info));
  const std::size_t stride = static_cast<std::size_t>(image.width) * 3;
  if (png_get_rowbytes(reader, info) != stride) unsupported_image("this kind of PNG");
  std::vector<png_bytep> lines;
  for (std::int64_t row = 0; row < image.height; ++row) {
    lines.push_back(&image.rgb[static_cast<std::size_t>(row) * stride]);
  }
  if (!read_lines(reader, info, lines.data())) damaged_image("PNG", source.reason);
  return image;
}

}  // namespace tenon::inline ops
