#include "quantize/relay_pipeline.h"

#include "base/error.h"
#include "base/text.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "host/compiled.h"
#include "ir/verify.h"
#include "passes/compat/relay/stages.h"
#include "passes/quantize/qdq.h"
#include "quantize/relay_thresholds.h"

#include <algorithm>
#include <limits>

namespace tenon::quantize {
namespace {

using passes::relay_quantize::Config;
using passes::relay_quantize::QuantizerKind;

// Quantizes weights of any size at compile time.
driver::PipelineOptions folding(std::vector<std::string> passes) {
  driver::PipelineOptions options;
  options.passes = std::move(passes);
  options.pass_options.max_constant_bytes = std::numeric_limits<std::int64_t>::max();
  return options;
}

class Calibrator {
 public:
  Calibrator(const Graph& graph, const CalibrationSamples* samples,
             const RelayQuantizeRequest& request)
      : graph_(graph), samples_(samples), request_(request) {}

  // Returns the scale of each quantizer.
  std::vector<float> scales() {
    const Config& config = request_.config;
    const std::vector<NodeId> nodes = passes::relay_quantize::quantizers(graph_);
    std::vector<float> scales(nodes.size(), config.global_scale);
    std::vector<std::size_t> watched;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (passes::relay_quantize::kind_of(graph_, nodes[k]) == QuantizerKind::Weight) {
        scales[k] = passes::relay_quantize::weight_scale(graph_, nodes[k], config);
      } else {
        watched.push_back(k);
      }
    }
    if (config.calibrate_mode == "global_scale" || watched.empty()) return scales;
    if (samples_ == nullptr) {
      throw Error(concat("calibrate_mode=", config.calibrate_mode, " looks at samples"),
                  ErrorKind::Usage)
          .expected("--calibrate=@DIR or random:N");
    }
    const std::size_t chunk = config.calibrate_chunk_by < 0
                                  ? watched.size()
                                  : static_cast<std::size_t>(config.calibrate_chunk_by);
    for (std::size_t at = 0; at < watched.size(); at += chunk) {
      const std::size_t count = std::min(chunk, watched.size() - at);
      std::vector<NodeId> some;
      for (std::size_t k = 0; k < count; ++k) some.push_back(nodes[watched[at + k]]);
      const std::vector<float> found = thresholds(some);
      for (std::size_t k = 0; k < count; ++k) scales[watched[at + k]] = found[k];
    }
    return scales;
  }

 private:
  using See = std::function<void(std::size_t value, std::span<const float> elements)>;

  void sweep(CompiledModel& model, const See& see) {
    for (std::size_t k = 0; k < samples_->size(); ++k) {
      const std::vector<Datum> values = model.run(samples_->read(k));
      for (std::size_t at = 0; at < values.size(); ++at) see(at, values[at].tensor().as<float>());
      if (request_.on_sample) request_.on_sample(k + 1, samples_->size());
    }
  }

  std::vector<float> thresholds(const std::vector<NodeId>& nodes) {
    CompiledModel model(driver::compile_graph(passes::relay_quantize::profile_graph(graph_, nodes)),
                        request_.threads);
    std::vector<float> found;
    if (request_.config.calibrate_mode == "kl_divergence") {
      std::vector<KlObserver> observers(nodes.size());
      sweep(model, [&](std::size_t at, auto elements) { observers[at].see_extent(elements); });
      sweep(model, [&](std::size_t at, auto elements) { observers[at].count(elements); });
      for (const auto& observer : observers) found.push_back(observer.threshold());
    } else {
      std::vector<std::size_t> totals(nodes.size(), 0);
      sweep(model, [&](std::size_t at, auto elements) { totals[at] += elements.size(); });
      std::vector<PercentileObserver> observers;
      for (const std::size_t total : totals)
        observers.emplace_back(static_cast<std::int64_t>(total));
      sweep(model, [&](std::size_t at, auto elements) { observers[at].count(elements); });
      for (const auto& observer : observers) found.push_back(observer.threshold());
    }
    return found;
  }

  const Graph& graph_;
  const CalibrationSamples* samples_;
  const RelayQuantizeRequest& request_;
};

}  // namespace

const std::vector<std::string>& relay_quantize_stages() {
  static const std::vector<std::string> stages = {"prepare", "partition", "annotate", "calibrate",
                                                  "realize"};
  return stages;
}

RelayQuantizeResult relay_quantize_model(Graph graph, const CalibrationSamples* samples,
                                         const RelayQuantizeRequest& request) {
  const std::vector<std::string>& stages = relay_quantize_stages();
  if (!request.stop_after.empty() &&
      std::ranges::find(stages, request.stop_after) == stages.end()) {
    throw Error(concat("--stop-after: no stage is called '", request.stop_after, "'"),
                ErrorKind::Usage)
        .expected("one of ", join(stages, ", "))
        .hint(suggest_name(request.stop_after, stages));
  }
  passes::require_floats(graph);
  RelayQuantizeResult result;
  // Returns whether it was the last stage.
  const auto done = [&](std::string_view stage) {
    verify(graph);
    if (request.on_stage) request.on_stage(stage, graph);
    const bool is_last = request.stop_after == stage;
    if (is_last) result.graph = std::move(graph);
    return is_last;
  };
  const Config& config = request.config;
  graph = driver::run_pipeline(std::move(graph), folding({"fold-constants"}));
  if (passes::relay_quantize::has_scales(graph))
    graph = driver::run_pipeline(std::move(graph), folding({"fold-scales", "fold-constants"}));
  graph = driver::run_pipeline(passes::relay_quantize::prepare(std::move(graph)),
                               folding({"fold-constants"}));
  if (done("prepare")) return result;

  driver::PipelineOptions cut = folding({"quantize-partition"});
  cut.pass_options.quantize_partition.dtype = config.dtype_input;
  cut.pass_options.quantize_partition.multiply_right = true;
  graph = driver::run_pipeline(std::move(graph), cut);
  if (done("partition")) return result;

  graph = passes::relay_quantize::annotate(graph, config);
  for (const NodeId id : passes::relay_quantize::quantizers(graph))
    ++(passes::relay_quantize::kind_of(graph, id) == QuantizerKind::Weight
           ? result.weight_quantizers
           : result.input_quantizers);
  if (done("annotate")) return result;

  const std::vector<float> scales = Calibrator(graph, samples, request).scales();
  const std::vector<NodeId> nodes = passes::relay_quantize::quantizers(graph);
  for (std::size_t k = 0; k < nodes.size(); ++k)
    result.scales.emplace_back(graph.value(graph.node(nodes[k]).operands.front()).name, scales[k]);
  graph = passes::relay_quantize::bind_scales(graph, scales, config);
  if (done("calibrate")) return result;

  if (!config.do_simulation) {
    graph = driver::run_pipeline(passes::relay_quantize::realize(graph, config),
                                 folding({"fold-constants"}));
    if (done("realize")) return result;
  }
  result.graph = std::move(graph);
  return result;
}

}  // namespace tenon::quantize
