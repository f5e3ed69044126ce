#include "codegen/cuda/source_writer.h"

#include "base/text.h"
#include "codegen/cuda/attention_writer.h"
#include "codegen/cuda/epilogue_template.h"
#include "codegen/cuda/gemm_writer.h"
#include "codegen/cuda/kernel_writer.h"
#include "codegen/cuda/mma_sync_template.h"
#include "codegen/cuda/prelude.h"
#include "codegen/cuda/tma_template.h"
#include "codegen/cuda/wgmma_template.h"
#include "ir/float_formats.h"

#include <algorithm>
#include <bit>

namespace tenon::codegen::cuda {
namespace {

// Emits lookup tables for the 8-bit formats that the kernels use (256 entries each).
std::string tables(const std::string& kernels) {
  std::string text;
  for (const DTypeInfo& dtype : all_dtypes()) {
    const std::string name = concat("values_of_", dtype.name);
    if (kernels.find(name + "[") == std::string::npos) continue;
    std::vector<std::string> values;
    for (unsigned code = 0; code < 256; ++code) {
      const float value = narrow_float_to_f32(dtype.dtype, static_cast<std::uint8_t>(code));
      values.push_back(concat(std::bit_cast<std::uint32_t>(value), "u"));
    }
    // Emitted as bits, because C++ has no literals for NaN and infinity.
    text += concat("__constant__ u32 ", name, "[256] = {", join(values, ", "), "};\n");
  }
  return text;
}

// Concatenates the templates that at least one kernel calls.
std::string templates(const std::vector<BoundNest>& kernels, bool are_emulated) {
  const auto some = [&](const auto& property) {
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](const BoundNest& kernel) { return property(kernel.binding); });
  };
  const bool has_attention =
      some([](const GridBinding& made) { return made.attention && !made.uses_tma(); });
  const bool has_wgmma_attention =
      some([](const GridBinding& made) { return made.wgmma_attention.has_value(); });
  const bool has_split_attention =
      some([](const GridBinding& made) { return made.split_attention.has_value(); });
  const bool has_gemm = some([](const GridBinding& made) { return made.gemm.has_value(); });
  const bool has_weight_gradient =
      some([](const GridBinding& made) { return made.weight_gradient.has_value(); });
  const bool has_convolution =
      some([](const GridBinding& made) { return made.convolution.has_value(); });
  const bool has_mma = some([](const GridBinding& made) { return made.mma.has_value(); });
  const bool has_boxes = some([](const GridBinding& made) { return made.uses_tma(); });
  std::string text;
  if (has_attention || has_boxes || has_mma) text += mma_sync_template();
  if (has_attention) text += attention_template();
  if (has_boxes) {
    text += wgmma_template(has_wgmma_attention);
    if (are_emulated) text += tma_emulation();
    text += tma_template();
  }
  if (has_boxes || has_mma) text += epilogue_template();
  if (has_wgmma_attention || has_split_attention) text += attention_span_template();
  if (has_wgmma_attention) text += wgmma_attention_template();
  if (has_split_attention) text += split_attention_template();
  if (has_gemm || has_convolution) text += gemm_template();
  if (has_convolution) text += convolution_template();
  if (has_mma) text += mma_template();
  if (has_weight_gradient) text += weight_gradient_template();
  return text;
}

}  // namespace

std::string KernelWriter::emulation() const {
  std::string call;
  std::size_t given = 0;
  for (const NestBuffer& buffer : nest_.buffers) {
    if (buffer.storage == StorageClass::Scratch) continue;
    call += concat("(", buffer.storage == StorageClass::Operand ? "const " : "",
                   stored_type(buffer.dtype), "*)emulated_buffers[", given++, "], ");
  }
  for (std::size_t k = 0; k < nest_.extents.size(); ++k)
    call += concat("emulated_extents[", k, "], ");
  return concat(
      "static void body_", symbol_, "() { ", symbol_, "(", call, "emulated_scratch, emulated_error",
      binding_.uses_tma()
          ? ", *(const TensorMap*)emulated_maps, *(const TensorMap*)(emulated_maps + 128)"
          : "",
      "); }\n", "extern \"C\" void emulate_", symbol_,
      "(void** buffers, const i64* extents, u8* scratch, i64* error, unsigned blocks, const u8* "
      "maps) {\n",
      "  emulated_buffers = buffers; emulated_extents = extents; emulated_scratch = scratch; "
      "emulated_error = error; emulated_maps = maps;\n",
      "  emulated_launch(body_", symbol_, ", blocks, ", binding_.threads, ", ",
      binding_.group > 1 || binding_.uses_tma() ? "true" : "false", ", ", binding_.cluster(),
      ");\n}\n");
}

std::string write_source(const std::vector<BoundNest>& kernels) {
  std::string text;
  for (const BoundNest& kernel : kernels) text += "\n" + KernelWriter(kernel).run();
  return concat(prelude(), templates(kernels, false), tables(text), text);
}

std::string write_emulation(const std::vector<BoundNest>& kernels) {
  std::string text = R"(static void** emulated_buffers;
static const i64* emulated_extents;
static u8* emulated_scratch;
static i64* emulated_error;
static const u8* emulated_maps;
static void emulated_launch(void (*body)(), unsigned blocks, unsigned threads, bool has_barriers, unsigned together) {
  gridDim.x = blocks;
  blockDim.x = threads;
  emulated::body = body;
  for (unsigned block = 0; block < blocks; block += together) {
    if (has_barriers) { emulated::run_blocks(block, together, threads); continue; }
    blockIdx.x = block;
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) body();
  }
  if (emulated::is_stuck) *emulated_error = -1;
}
)";
  for (const BoundNest& kernel : kernels) {
    KernelWriter writer(kernel);
    text += "\n" + writer.run() + writer.emulation();
  }
  return concat(device_emulation(), prelude(), templates(kernels, true), tables(text), text);
}

}  // namespace tenon::codegen::cuda
