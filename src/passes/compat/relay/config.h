#pragma once

#include "ir/dtype.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::passes::relay_quantize {

/// Kind of value that a quantizer wraps.
enum class QuantizerKind : std::uint8_t { Identity, Input, Weight, Activation };
std::string_view name_of(QuantizerKind kind);

/// Relay's quantization configuration, with its names and defaults. The last two are Tenon's.
struct Config {
  int nbit_input = 8, nbit_weight = 8, nbit_activation = 32;
  DType dtype_input = DType::I8, dtype_weight = DType::I8, dtype_activation = DType::I32;
  /// or kl_divergence, percentile
  std::string calibrate_mode = "global_scale";
  /// assumed largest magnitude of every activation
  float global_scale = 8;
  /// or max
  std::string weight_scale = "power2";
  bool skip_dense_layer = true;
  /// Convolutions that stay floats, by number in traversal order; absent: all are quantized.
  std::optional<std::vector<std::int64_t>> skip_conv_layers = std::vector<std::int64_t>{0};
  /// stops after inserting simulated quantizers into the float graph
  bool do_simulation = false;
  /// adds one half before a right shift
  bool round_for_shift = true;
  /// Ops that get quantizers, by their names in Relay; others are forwarded. Absent: all ops.
  std::optional<std::vector<std::string>> debug_enabled_ops;
  /// of fixed-point products; or TONEAREST
  std::string rounding = "UPWARD";
  /// values observed per sweep over the samples; -1: all
  std::int64_t calibrate_chunk_by = -1;
  std::string partition_conversions = "disabled";

  /// Treats the sum of two 8-bit values as an 8-bit value, as Relay did until 2023; a following
  /// cast wraps around.
  bool legacy_add = false;
  /// tie rule of quantizing floats, as in ONNX; or away from zero
  std::string ties = "even";

  int bits(QuantizerKind kind) const;
};

/// Sets a field, such as `global_scale=4`, `skip_conv_layers=0,3` or `none`. Throws Error (Usage)
/// for an unknown field or value, and for unsupported ones.
void set_field(Config& config, std::string_view setting);

}  // namespace tenon::passes::relay_quantize
