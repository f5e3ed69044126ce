#pragma once

#include "driver/quantization/ranges.h"
#include "driver/quantization/samples.h"
#include "passes/quantize/qdq.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tenon {

/// What is asked of a quantization.
struct QuantizeRequest {
  /// int8, int8-symmetric, w8, w4; w8:32 and w4:32 in groups of so many
  std::string scheme = "int8";
  RangeRule rule = RangeRule::Mse;
  /// products by name that stay floats
  std::vector<std::string> skip;
  /// by what quantizing shifts each product's outputs by
  bool corrects_biases = true;
  /// channels between convolutions are brought to one size
  bool equalises = false;
  /// of outputs, as a share of their size; 0: any
  double target_error = 0;
  int threads = 0;
  /// what was seen is kept there until the end, and taken up again
  std::string state_path;
  std::function<void(std::size_t done, std::size_t total)> on_sample = {};
  std::function<bool()> is_interrupted = {};
};

/// `equalise=true`, `correct_biases=false`. Throws Error (Usage) for other settings.
void set_field(QuantizeRequest& request, std::string_view setting);

/// What became of a product.
struct QuantizedNode {
  std::string name, op;
  /// why it is not quantized; empty where it is
  std::string skipped;
  /// of its result against what quantizing it alone takes away
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
  /// root of the energy of the difference over that of the outputs
  double output_error = 0;
  /// of constants
  std::int64_t bytes_before = 0, bytes_after = 0;
};

/// Folds scales, watches the samples, chooses ranges and puts in quantize and dequantize. Throws
/// Error (Usage) for a model that is quantized already, a scheme that is none, a node to skip that
/// is no product.
QuantizeResult quantize_model(Graph graph, const CalibrationSamples& samples,
                              const QuantizeRequest& request);

/// The graph as products are looked for in: constants and scales folded.
Graph ready_to_quantize(Graph graph);

}  // namespace tenon
