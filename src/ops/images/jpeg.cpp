#include "ops/images/image.h"

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>
#include <string>

namespace tenon::inline ops {
namespace {

// Decompression bomb limit: every scan costs a pass over the image, and cameras write about ten.
constexpr int kMaxScans = 200;

/// Error handler of libjpeg. The handler must not return, so it jumps.
struct Reporter {
  jpeg_error_mgr manager;  // first: the library accesses only this member
  std::jmp_buf back;
  char reason[JMSG_LENGTH_MAX];
  jpeg_progress_mgr progress;
};

[[noreturn]] void give_up(j_common_ptr info) {
  auto* reporter = reinterpret_cast<Reporter*>(info->err);
  reporter->manager.format_message(info, reporter->reason);
  std::longjmp(reporter->back, 1);
}

// libjpeg reports a truncated file as a warning and fills in the rest; here it is an error.
void take_message(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) give_up(info);
}

void watch_scans(j_common_ptr info) {
  auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number <= kMaxScans) return;
  auto* reporter = reinterpret_cast<Reporter*>(info->err);
  std::snprintf(reporter->reason, sizeof reporter->reason, "more than %d scans", kMaxScans);
  std::longjmp(reporter->back, 1);
}

enum class JpegOutcome { Done, Damaged, Colours };

// These two functions create no objects with destructors, which a longjmp would skip.
JpegOutcome read_header(ByteSpan data, Image& image, Reporter& reporter,
                        jpeg_decompress_struct& decoder) {
  if (setjmp(reporter.back) != 0) return JpegOutcome::Damaged;
  jpeg_create_decompress(&decoder);
  decoder.progress = &reporter.progress;
  jpeg_mem_src(&decoder, data.data(), data.size());
  jpeg_read_header(&decoder, TRUE);
  if (decoder.num_components != 1 && decoder.num_components != 3) return JpegOutcome::Colours;
  decoder.out_color_space = JCS_RGB;
  image.height = decoder.image_height;
  image.width = decoder.image_width;
  return JpegOutcome::Done;
}

JpegOutcome read_lines(Image& image, Reporter& reporter, jpeg_decompress_struct& decoder) {
  if (setjmp(reporter.back) != 0) return JpegOutcome::Damaged;
  jpeg_start_decompress(&decoder);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW line = &image.rgb[std::size_t{decoder.output_scanline} * decoder.output_width * 3];
    jpeg_read_scanlines(&decoder, &line, 1);
  }
  jpeg_finish_decompress(&decoder);
  return JpegOutcome::Done;
}

}  // namespace

Image decode_jpeg(ByteSpan data) {
  Reporter reporter{};
  jpeg_decompress_struct decoder{};
  decoder.err = jpeg_std_error(&reporter.manager);
  reporter.manager.error_exit = give_up;
  reporter.manager.emit_message = take_message;
  reporter.progress.progress_monitor = watch_scans;
  const struct Guard {
    jpeg_decompress_struct& held;
    ~Guard() { jpeg_destroy_decompress(&held); }
  } guard{decoder};
  Image size;
  JpegOutcome outcome = read_header(data, size, reporter, decoder);
  if (outcome == JpegOutcome::Colours) unsupported_image("a JPEG of four colours");
  if (outcome == JpegOutcome::Damaged) damaged_image("JPEG", reporter.reason);
  Image image = blank_image(size.height, size.width);
  outcome = read_lines(image, reporter, decoder);
  if (outcome == JpegOutcome::Damaged) damaged_image("JPEG", reporter.reason);
  return image;
}

}  // namespace tenon::inline ops
