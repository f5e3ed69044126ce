#pragma once

#include "driver/quantization/samples.h"
#include "passes/quantize/relay/config.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Relay's int8 quantization from end to end.
struct RelayQuantizeRequest {
  relay_quantize::Config config;
  /// a stage; empty: all of them
  std::string stop_after;
  int threads = 0;
  std::function<void(std::string_view stage, const Graph& after)> on_stage = {};
  std::function<void(std::size_t done, std::size_t total)> on_sample = {};
};

/// prepare, partition, annotate, calibrate, realize.
const std::vector<std::string>& relay_quantize_stages();

/// What the graph's quantizers count, and what became of nodes.
struct RelayQuantizeResult {
  Graph graph;
  std::size_t input_quantizers = 0, weight_quantizers = 0;
  /// of each quantizer, in the order of visits
  std::vector<std::pair<std::string, float>> scales;
};

/// Runs the stages. Samples are looked at where `calibrate_mode` asks for more than a global scale;
/// null where there are none. Throws Error (Usage) for a stage that is none, samples that are
/// missing and a model that is quantized already.
RelayQuantizeResult relay_quantize_model(Graph graph, const CalibrationSamples* samples,
                                         const RelayQuantizeRequest& request);

}  // namespace tenon
