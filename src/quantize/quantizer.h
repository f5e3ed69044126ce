#pragma once

#include "passes/quantize/qdq.h"
#include "quantize/ranges.h"
#include "quantize/samples.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tenon::quantize {

/// Options of post-training quantization.
struct QuantizeRequest {
  /// int8, int8-symmetric, w8, w4; w8:32 and w4:32 with that group size
  std::string scheme = "int8";
  RangeRule rule = RangeRule::Mse;
  /// names of products that stay floats
  std::vector<std::string> skip;
  /// bias correction for the shift of each product's outputs by quantization
  bool corrects_biases = true;
  /// cross-layer equalization of channels between convolutions
  bool equalises = false;
  /// target for the relative output error; 0: any
  double target_error = 0;
  int threads = 0;
  /// file for the calibration state, which allows interrupted calibration to resume
  std::string state_path;
  std::function<void(std::size_t done, std::size_t total)> on_sample = {};
  std::function<bool()> is_interrupted = {};
};

/// Sets `equalise=true` or `correct_biases=false`. Throws Error (Usage) for other settings.
void set_field(QuantizeRequest& request, std::string_view setting);

/// Result for one product.
struct QuantizedNode {
  std::string name, op;
  /// why it is not quantized; empty if it is
  std::string skipped;
  /// signal-to-noise ratio of its result when only this product is quantized
  double signal_db = 0;
};

struct QuantizeResult {
  Graph graph;
  std::vector<QuantizedNode> nodes;
  /// by value
  std::map<std::string, Histogram> histograms;
  std::map<std::string, ValueRange> ranges;
  std::size_t samples = 0, resumed = 0;
  /// pairs of convolutions; products
  std::size_t equalised = 0, corrected = 0;
  /// relative error of the outputs: root of the energy of the difference over that of the outputs
  double output_error = 0;
  /// of constants
  std::int64_t bytes_before = 0, bytes_after = 0;
};

/// Post-training quantization: folds scales, calibrates on the samples, chooses ranges and inserts
/// quantize and dequantize nodes. Throws Error (Usage) for a model that is already quantized, an
/// unknown scheme, or a skipped node that is not a product.
QuantizeResult quantize_model(Graph graph, const CalibrationSamples& samples,
                              const QuantizeRequest& request);

/// Returns the graph in the form in which products are searched: constants and scales folded.
Graph ready_to_quantize(Graph graph);

}  // namespace tenon::quantize
