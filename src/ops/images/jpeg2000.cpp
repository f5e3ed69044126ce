#include "ops/images/image.h"

#include <openjpeg.h>

#include <algorithm>
#include <memory>
#include <string>

namespace tenon::inline ops {
namespace {

struct Jpeg2000Source {
  ByteSpan data;
  std::size_t at = 0;
};

constexpr auto kFailed = static_cast<OPJ_SIZE_T>(-1);

OPJ_SIZE_T read_bytes(void* target, OPJ_SIZE_T count, void* user) {
  auto* source = static_cast<Jpeg2000Source*>(user);
  const std::size_t held = std::min<std::size_t>(count, source->data.size() - source->at);
  if (held == 0) return kFailed;
  std::copy_n(source->data.begin() + static_cast<std::ptrdiff_t>(source->at), held,
              static_cast<std::uint8_t*>(target));
  source->at += held;
  return held;
}

OPJ_BOOL seek(OPJ_OFF_T offset, void* user) {
  auto* source = static_cast<Jpeg2000Source*>(user);
  if (offset < 0 || static_cast<std::size_t>(offset) > source->data.size()) return OPJ_FALSE;
  source->at = static_cast<std::size_t>(offset);
  return OPJ_TRUE;
}

OPJ_OFF_T skip(OPJ_OFF_T count, void* user) {
  auto* source = static_cast<Jpeg2000Source*>(user);
  return seek(static_cast<OPJ_OFF_T>(source->at) + count, user) == OPJ_TRUE ? count : -1;
}

void keep_reason(const char* text, void* user) {
  auto* reason = static_cast<std::string*>(user);
  if (!reason->empty()) return;
  *reason = text;
  while (!reason->empty() && reason->back() == '\n') reason->pop_back();
}

// Scales samples of other widths to eight bits.
std::uint8_t sample(const opj_image_comp_t& plane, std::size_t position) {
  const int centred = plane.data[position] + (plane.sgnd != 0 ? 1 << (plane.prec - 1) : 0);
  const int scaled =
      plane.prec > 8 ? centred >> (plane.prec - 8) : centred * 255 / ((1 << plane.prec) - 1);
  return static_cast<std::uint8_t>(std::clamp(scaled, 0, 255));
}

bool is_plain(const opj_image_t& image) {
  if ((image.numcomps != 1 && image.numcomps < 3) || image.color_space == OPJ_CLRSPC_SYCC ||
      image.color_space == OPJ_CLRSPC_EYCC || image.color_space == OPJ_CLRSPC_CMYK) {
    return false;
  }
  for (std::uint32_t k = 0; k < std::min(image.numcomps, 3U); ++k) {
    const opj_image_comp_t& plane = image.comps[k];
    if (plane.dx != 1 || plane.dy != 1 || plane.prec < 1 || plane.prec > 16) return false;
  }
  return true;
}

}  // namespace

Image decode_jpeg2000(ByteSpan data) {
  Jpeg2000Source source{data, 0};
  std::string reason;
  const bool is_bare = data[0] == 0xFF;
  const std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)> codec(
      opj_create_decompress(is_bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2),
      [](opj_codec_t* held) { opj_destroy_codec(held); });
  const std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)> stream(
      opj_stream_create(1 << 16, OPJ_TRUE), [](opj_stream_t* held) { opj_stream_destroy(held); });
  if (!codec || !stream) throw std::bad_alloc();
  opj_set_error_handler(codec.get(), keep_reason, &reason);
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), data.size());
  opj_stream_set_read_function(stream.get(), read_bytes);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* read = nullptr;
  const bool has_header = opj_setup_decoder(codec.get(), &parameters) == OPJ_TRUE &&
                          opj_read_header(stream.get(), codec.get(), &read) == OPJ_TRUE;
  const std::unique_ptr<opj_image_t, void (*)(opj_image_t*)> planes(
      read, [](opj_image_t* held) { opj_image_destroy(held); });
  if (!has_header || !planes) damaged_image("JPEG 2000", reason);
  Image image =
      blank_image(std::int64_t{planes->y1} - planes->y0, std::int64_t{planes->x1} - planes->x0);
  if (!is_plain(*planes)) unsupported_image("this kind of JPEG 2000");
  if (opj_decode(codec.get(), stream.get(), planes.get()) != OPJ_TRUE)
    damaged_image("JPEG 2000", reason);
  const std::size_t count = image.rgb.size() / 3;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const opj_image_comp_t& plane = planes->comps[planes->numcomps >= 3 ? channel : 0];
    if (plane.data == nullptr || std::size_t{plane.w} * plane.h != count)
      damaged_image("JPEG 2000", reason);
    for (std::size_t k = 0; k < count; ++k) image.rgb[3 * k + channel] = sample(plane, k);
  }
  return image;
}

}  // namespace tenon::inline ops
