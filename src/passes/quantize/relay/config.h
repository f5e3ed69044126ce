#pragma once

#include "ir/dtype.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::relay_quantize {

/// What a quantizer is put around.
enum class Kind : std::uint8_t { Identity, Input, Weight, Activation };
std::string_view name_of(Kind kind);

/// Relay's configuration of quantization, its names and defaults; the last two are Tenon's.
struct Config {
  int nbit_input = 8, nbit_weight = 8, nbit_activation = 32;
  DType dtype_input = DType::I8, dtype_weight = DType::I8, dtype_activation = DType::I32;
  /// or kl_divergence, percentile
  std::string calibrate_mode = "global_scale";
  /// taken for the largest size of every activation
  float global_scale = 8;
  /// or max
  std::string weight_scale = "power2";
  bool skip_dense_layer = true;
  /// Convolutions that stay floats, counted in the order of visits; none: all are quantized.
  std::optional<std::vector<std::int64_t>> skip_conv_layers = std::vector<std::int64_t>{0};
  /// ends with simulated quantizers in a graph of floats
  bool do_simulation = false;
  /// adds a half before a shift to the right
  bool round_for_shift = true;
  /// Ops by their words in Relay; others are forwarded without quantizers. None: all of them.
  std::optional<std::vector<std::string>> debug_enabled_ops;
  /// of products by a fraction; or TONEAREST
  std::string rounding = "UPWARD";
  /// values watched in one sweep over the samples; -1: all
  std::int64_t calibrate_chunk_by = -1;
  std::string partition_conversions = "disabled";

  /// The sum of two 8-bit values is taken for one of 8 bits, as until 2023; a cast that follows
  /// wraps around.
  bool legacy_add = false;
  /// where a value is first quantized, as ONNX does; or away from zero
  std::string ties = "even";

  int bits(Kind kind) const;
};

/// `global_scale=4`, `skip_conv_layers=0,3` or `none`. Throws Error (Usage) for a field that is
/// none, a value it cannot have, and what is not supported.
void set_field(Config& config, std::string_view setting);

}  // namespace tenon::relay_quantize
