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
  std::string scheme =
      "int8";  ///< int8, int8-symmetric, w8, w4; w8:32 and w4:32 in groups of so many
  RangeRule rule = RangeRule::Mse;
  std::vector<std::string> skip;  ///< products by name that stay floats
  bool corrects_biases = true;    ///< by what quantizing shifts each product's outputs by
  bool equalises = false;         ///< channels between convolutions are brought to one size
  double target_error = 0;        ///< of outputs, as a share of their size; 0: any
  int threads = 0;
  std::string state_path;  ///< what was seen is kept there until the end, and taken up again
  std::function<void(std::size_t done, std::size_t total)> on_sample = {};
  std::function<bool()> is_interrupted = {};
};

/// `equalise=true`, `correct_biases=false`. Throws Error (Usage) for other settings.
void set_field(QuantizeRequest& request, std::string_view setting);

/// What became of a product.
struct QuantizedNode {
  std::string name, op;
  std::string skipped;   ///< why it is not quantized; empty where it is
  double signal_db = 0;  ///< of its result against what quantizing it alone takes away
};

struct QuantizeResult {
  Graph graph;
  std::vector<QuantizedNode> nodes;
  std::map<std::string, Histogram> histograms;  ///< by value
  std::map<std::string, ValueRange> ranges;
  std::size_t samples = 0, resumed = 0;
  std::size_t equalised = 0, corrected = 0;  ///< pairs of convolutions; products
  double output_error = 0;  ///< root of the energy of the difference over that of the outputs
  std::int64_t bytes_before = 0, bytes_after = 0;  ///< of constants
};

/// Folds scales, watches the samples, chooses ranges and puts in quantize and dequantize. Throws
/// Error (Usage) for a model that is quantized already, a scheme that is none, a node to skip that
/// is no product.
QuantizeResult quantize_model(Graph graph, const CalibrationSamples& samples,
                              const QuantizeRequest& request);

/// The graph as products are looked for in: constants and scales folded.
Graph ready_to_quantize(Graph graph);

}  // namespace tenon
