#include "base/error.h"
#include "ops/images/image.h"

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string>

namespace tenon::inline ops {
namespace {

constexpr tmsize_t kMaxAllocation = tmsize_t{1} << 30;

struct TiffSource {
  ByteSpan data;
  toff_t at = 0;
  std::string reason;
};

TiffSource& source_of(thandle_t handle) { return *static_cast<TiffSource*>(handle); }

tmsize_t read_bytes(thandle_t handle, void* target, tmsize_t count) {
  TiffSource& source = source_of(handle);
  if (source.at >= source.data.size() || count <= 0) return 0;
  const auto held =
      std::min<std::size_t>(static_cast<std::size_t>(count), source.data.size() - source.at);
  std::copy_n(source.data.begin() + static_cast<std::ptrdiff_t>(source.at), held,
              static_cast<std::uint8_t*>(target));
  source.at += held;
  return static_cast<tmsize_t>(held);
}
tmsize_t write_bytes(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek(thandle_t handle, toff_t offset, int whence) {
  TiffSource& source = source_of(handle);
  source.at = offset + (whence == SEEK_CUR   ? source.at
                        : whence == SEEK_END ? source.data.size()
                                             : 0);
  return source.at;
}
int close_nothing(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return source_of(handle).data.size(); }

// Keeps the first message, which names the cause.
int keep_reason(TIFF*, void* user, const char*, const char* format, va_list values) {
  std::string& reason = static_cast<TiffSource*>(user)->reason;
  if (!reason.empty()) return 1;
  char text[256];
  std::vsnprintf(text, sizeof text, format, values);
  reason = text;
  return 1;
}
int ignore(TIFF*, void*, const char*, const char*, va_list) { return 1; }

}  // namespace

Image decode_tiff(ByteSpan data) {
  TiffSource source{data, 0, {}};
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMaxAllocation);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_reason, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignore, nullptr);
  // 'm' disables memory mapping.
  const std::unique_ptr<TIFF, void (*)(TIFF*)> file(
      TIFFClientOpenExt("image", "rm", &source, read_bytes, write_bytes, seek, close_nothing,
                        size_of, nullptr, nullptr, options.get()),
      [](TIFF* opened) { TIFFClose(opened); });
  if (!file) damaged_image("TIFF", source.reason);
  std::uint32_t width = 0, height = 0;
  TIFFGetField(file.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(file.get(), TIFFTAG_IMAGELENGTH, &height);
  Image image = blank_image(height, width);
  char why[1024] = "";
  if (TIFFRGBAImageOK(file.get(), why) == 0)
    unsupported_image(concat("this kind of TIFF (", why, ")"));
  std::vector<std::uint32_t> pixels(std::size_t{width} * height);
  if (TIFFReadRGBAImageOriented(file.get(), width, height, pixels.data(), ORIENTATION_TOPLEFT, 1) ==
      0) {
    damaged_image("TIFF", source.reason);
  }
  for (std::size_t k = 0; k < pixels.size(); ++k) {
    image.rgb[3 * k] = static_cast<std::uint8_t>(TIFFGetR(pixels[k]));
    image.rgb[3 * k + 1] = static_cast<std::uint8_t>(TIFFGetG(pixels[k]));
    image.rgb[3 * k + 2] = static_cast<std::uint8_t>(TIFFGetB(pixels[k]));
  }
  return image;
}

}  // namespace tenon::inline ops
