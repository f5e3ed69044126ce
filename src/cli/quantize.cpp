#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"
#include "documents/document.h"
#include "documents/native_node.h"
#include "driver/compile.h"
#include "models/model.h"
#include "models/model_source.h"
#include "program/file.h"
#include "quantize/quantizer.h"
#include "quantize/relay_pipeline.h"
#include "quantize/report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct QuantizeCommandOptions {
  std::string model, calibrate, scheme = "int8", ranges = "mse", output, report;
  std::vector<std::string> skip;
  /// or relay, with its stages and fields
  std::string pipeline = "tenon", stop_after;
  std::vector<std::string> set;
  bool print = false;
  /// 0: any
  double target_error = 0;
  /// lists every node in the table
  bool all = false;
  int threads = 0;
};

std::string decimal_text(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string megabytes(std::int64_t bytes) {
  return concat(decimal_text(static_cast<double>(bytes) / 1e6, 2), " MB");
}

constexpr const char* kEndings[] = {".onnx", ".tnn", ".tenon", ".relay"};

// Checked before the work, whose result could not be written.
void require_output(const std::string& path) {
  const auto is_format = [&](const char* ending) { return path.ends_with(ending); };
  if (path.empty() || std::ranges::any_of(kEndings, is_format)) return;
  throw Error("cannot tell the format of the quantized model", ErrorKind::Usage)
      .expected("a file that ends in .onnx, .tnn, .tenon or .relay")
      .got(path);
}

void write_quantized(const Graph& graph, const std::string& path) {
  if (path.empty()) return;
  if (path.ends_with(".tnn")) {
    write_program(driver::compile_graph(graph), path);
  } else {
    models::save_model(graph, path.substr(path.rfind('.') + 1), path);
  }
}

std::vector<const quantize::QuantizedNode*> worst_of(const quantize::QuantizeResult& result) {
  std::vector<const quantize::QuantizedNode*> worst;
  for (const quantize::QuantizedNode& node : result.nodes) {
    if (node.skipped.empty()) worst.push_back(&node);
  }
  std::ranges::stable_sort(worst, {}, &quantize::QuantizedNode::signal_db);
  return worst;
}

Json as_json(const quantize::QuantizeResult& result, const QuantizeCommandOptions& options) {
  Json json = {{"model", options.model},
               {"scheme", options.scheme},
               {"samples", result.samples},
               {"resumed_from", result.resumed},
               {"equalised_pairs", result.equalised},
               {"corrected_biases", result.corrected},
               {"output_error", result.output_error},
               {"bytes_before", result.bytes_before},
               {"bytes_after", result.bytes_after},
               {"nodes", Json::array()}};
  for (const quantize::QuantizedNode& node : result.nodes) {
    Json entry = {{"name", node.name}, {"op", node.op}};
    if (node.skipped.empty()) {
      entry["signal_db"] = node.signal_db;
    } else {
      entry["skipped"] = node.skipped;
    }
    json["nodes"].push_back(std::move(entry));
  }
  return json;
}

void print_tables(const quantize::QuantizeResult& result, const QuantizeCommandOptions& options) {
  constexpr std::size_t kWorst = 10;
  const std::vector<const quantize::QuantizedNode*> quantized = worst_of(result);
  Table worst({"worst nodes", "op", ">signal to noise"});
  for (std::size_t k = 0; k < std::min(options.all ? quantized.size() : kWorst, quantized.size());
       ++k) {
    worst.add({quantized[k]->name, quantized[k]->op,
               concat(decimal_text(quantized[k]->signal_db, 1), " dB")});
  }
  worst.print(out());
  if (quantized.size() < result.nodes.size()) {
    Table skipped({"not quantized", "op", "reason"});
    for (const quantize::QuantizedNode& node : result.nodes) {
      if (!node.skipped.empty()) skipped.add({node.name, node.op, node.skipped});
    }
    out() << "\n";
    skipped.print(out());
  }
  out() << "\n"
        << quantized.size() << " of " << result.nodes.size() << " products quantized ("
        << options.scheme << ")";
  if (result.samples > 0)
    out() << ", ranges by " << options.ranges << " from " << result.samples << " samples";
  if (result.resumed > 0) out() << " (" << result.resumed << " of them seen before)";
  if (result.equalised > 0) out() << "\n" << result.equalised << " pairs of convolutions equalised";
  if (result.corrected > 0) out() << "\nbiases of " << result.corrected << " products corrected";
  out() << "\noutputs differ by " << decimal_text(100 * result.output_error, 3)
        << " % of their size; constants " << megabytes(result.bytes_before) << " before, "
        << megabytes(result.bytes_after) << " after\n";
}

void refuse(bool is_given, const char* option, const char* pipeline) {
  if (!is_given) return;
  throw Error(concat(option, " is of --pipeline=", pipeline), ErrorKind::Usage);
}

std::map<std::string, int> op_counts(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const NodeId id : graph.nodes_in_order()) ++counts[std::string(graph.op_name(id))];
  return counts;
}

// Relay's stages, with a line for each about the resulting graph.
int quantize_as_relay(const QuantizeCommandOptions& options, OutputFormat format) {
  refuse(options.scheme != "int8", "--scheme", "tenon");
  refuse(!options.skip.empty(), "--skip", "tenon");
  refuse(options.target_error != 0, "--target-error", "tenon");
  refuse(!options.report.empty(), "--report", "tenon");
  quantize::RelayQuantizeRequest request;
  for (const std::string& setting : options.set)
    passes::relay_quantize::set_field(request.config, setting);
  request.stop_after = options.stop_after;
  request.threads = options.threads;
  const Graph graph = models::ModelSource(options.model).graph();
  std::optional<quantize::CalibrationSamples> samples;
  if (!options.calibrate.empty()) samples.emplace(graph, options.calibrate);
  Progress progress("calibrate");
  request.on_sample = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
  Json stages = Json::array();
  request.on_stage = [&](std::string_view stage, const Graph& after) {
    stages.push_back(
        {{"stage", stage}, {"inputs", after.inputs().size()}, {"ops", op_counts(after)}});
  };
  const quantize::RelayQuantizeResult result =
      quantize::relay_quantize_model(graph, samples ? &*samples : nullptr, request);
  write_quantized(result.graph, options.output);
  if (options.print) {
    // Plain Relay text: files contain more, for an exact round trip.
    out() << documents::find_document_format("relay")->put_down(result.graph, {})->text("");
    return 0;
  }
  if (format == OutputFormat::Json) {
    Json json = {{"model", options.model},
                 {"pipeline", options.pipeline},
                 {"input_quantizers", result.input_quantizers},
                 {"weight_quantizers", result.weight_quantizers},
                 {"stages", stages},
                 {"scales", Json::array()}};
    for (const auto& [name, scale] : result.scales)
      json["scales"].push_back({{"value", name}, {"scale", scale}});
    out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return 0;
  }
  Table table({"stage", ">inputs", "nodes"});
  for (const Json& stage : stages) {
    std::vector<std::string> parts;
    for (const auto& [op, count] : stage["ops"].items())
      if (op != "constant") parts.push_back(concat(op, " ", count.get<int>()));
    table.add({stage["stage"].get<std::string>(), std::to_string(stage["inputs"].get<int>()),
               join(parts, ", ")});
  }
  table.print(out());
  out() << "\nquantizers: " << result.input_quantizers << " of values, " << result.weight_quantizers
        << " of weights\n";
  return 0;
}

int quantize(const QuantizeCommandOptions& options, OutputFormat format) {
  require_output(options.output);
  if (options.pipeline == "relay") return quantize_as_relay(options, format);
  refuse(!options.stop_after.empty(), "--stop-after", "relay");
  refuse(options.print, "--print", "relay");
  quantize::QuantizeRequest request;
  request.scheme = options.scheme;
  request.rule = quantize::range_rule(options.ranges);
  request.skip = options.skip;
  request.target_error = options.target_error;
  for (const std::string& setting : options.set) quantize::set_field(request, setting);
  request.threads = options.threads;
  if (!options.output.empty()) request.state_path = options.output + ".calibration";
  const Graph graph = quantize::ready_to_quantize(models::ModelSource(options.model).graph());
  const quantize::CalibrationSamples samples(
      graph, options.calibrate.empty() ? "random:8" : options.calibrate);
  const Interrupt interrupt;
  request.is_interrupted = [] { return Interrupt::is_asked(); };
  Progress progress("calibrate");
  request.on_sample = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
  const quantize::QuantizeResult result = quantize::quantize_model(graph, samples, request);
  write_quantized(result.graph, options.output);
  if (!options.report.empty()) {
    NewFile file(options.report);
    file.out() << quantize::quantization_report(options.model, result);
    file.finish();
  }
  if (format == OutputFormat::Json) {
    out() << as_json(result, options).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    print_tables(result, options);
  }
  const bool is_close = options.target_error == 0 || result.output_error <= options.target_error;
  return is_close ? 0 : static_cast<int>(ErrorKind::ComparisonFailed);
}

}  // namespace

void add_quantize(Commands& commands) {
  const auto [app, options] = commands.add<QuantizeCommandOptions>(
      "quantize", "Quantize a model to 8 or 4 bits, and report the loss of accuracy", quantize);
  app.add_option("model", options.model, kModelHelp)->required();
  app.add_option("--calibrate", options.calibrate,
                 "calibration samples: @DIR with a folder or .npz file for each, or "
                 "random:N (default: random:8)");
  app.add_option(
      "--scheme", options.scheme,
      "int8, int8-7bit (7-bit weights), int8-symmetric, or weight-only: w8[:GROUP], w4[:GROUP]");
  app.add_option("--ranges", options.ranges,
                 "calibration method: min-max, percentile, kl or mse (default)");
  app.add_option("--skip", options.skip, "contractions to leave unquantized")->delimiter(',');
  app.add_option("--target-error", options.target_error,
                 "leave the fewest contractions in float that bring the relative error of "
                 "outputs below this")
      ->check(positive_number(false));
  app.add_option("--pipeline", options.pipeline,
                 "tenon (default), or relay: partition, annotate, calibrate, realize")
      ->check(CLI::IsMember({"tenon", "relay"}));
  app.add_option("--set", options.set,
                 "with --pipeline=relay: FIELD=VALUE of its configuration, as global_scale=4");
  app.add_option("--stop-after", options.stop_after,
                 "with --pipeline=relay: prepare, partition, annotate, calibrate or realize");
  app.add_flag("--print", options.print, "with --pipeline=relay: print the program as Relay");
  app.add_option("--report", options.report,
                 "FILE.html: a page with every error, histogram and range");
  app.add_flag("--all", options.all, "list every contraction, not only the ten worst");
  add_threads(app, options.threads);
  app.add_option("-o,--output", options.output,
                 "the quantized model: FILE.onnx, FILE.tnn, FILE.tenon or FILE.relay");
}

}  // namespace tenon::cli
