#pragma once

#include "passes/compat/relay/config.h"
#include "quantize/samples.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::quantize {

/// Relay's int8 quantization from end to end.
struct RelayQuantizeRequest {
  passes::relay_quantize::Config config;
  /// a stage; empty: all stages
  std::string stop_after;
  int threads = 0;
  std::function<void(std::string_view stage, const Graph& after)> on_stage = {};
  std::function<void(std::size_t done, std::size_t total)> on_sample = {};
};

/// Returns prepare, partition, annotate, calibrate, realize.
const std::vector<std::string>& relay_quantize_stages();

/// The quantized graph and its quantizers.
struct RelayQuantizeResult {
  Graph graph;
  std::size_t input_quantizers = 0, weight_quantizers = 0;
  /// scale of each quantizer, in traversal order
  std::vector<std::pair<std::string, float>> scales;
};

/// Runs the stages. Samples are needed if `calibrate_mode` is not a global scale; null without
/// samples. Throws Error (Usage) for an unknown stage, missing samples, and a model that is already
/// quantized.
RelayQuantizeResult relay_quantize_model(Graph graph, const CalibrationSamples* samples,
                                         const RelayQuantizeRequest& request);

}  // namespace tenon::quantize
