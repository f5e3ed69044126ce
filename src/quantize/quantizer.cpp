#include "quantize/quantizer.h"

#include "base/error.h"
#include "base/interrupted.h"
#include "base/new_file.h"
#include "base/text.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "host/compiled.h"
#include "passes/quantize/equalise.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

namespace tenon::quantize {
namespace {

constexpr std::size_t kComparedSamples = 4;  // number of samples for output errors

// Parsed name of a scheme.
struct Scheme {
  passes::QdqPlan plan;
  bool is_symmetric = false;
  DType dtype = DType::U8;
};

Scheme scheme_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  Scheme scheme;
  const std::vector<std::string> names = {"int8", "int8-symmetric", "int8-7bit", "w8", "w4"};
  if (std::ranges::find(names, name) == names.end()) {
    throw Error(concat("--scheme: no scheme is called '", name, "'"), ErrorKind::Usage)
        .expected("int8, int8-7bit, int8-symmetric, w8[:GROUP] or w4[:GROUP]")
        .hint(suggest_name(name, names));
  }
  scheme.is_symmetric = name == "int8-symmetric";
  if (scheme.is_symmetric) scheme.dtype = DType::I8;
  if (name == "int8-7bit") scheme.plan.weight_bits = 7;
  scheme.plan.only_weights = name[0] == 'w';
  if (name == "w4") scheme.plan.weight_bits = 4;
  if (scheme.plan.only_weights) scheme.plan.group = 32;
  if (colon == std::string::npos) return scheme;
  const auto group = parse_integer(text.substr(colon + 1));
  if (!scheme.plan.only_weights || !group || *group < 2 || *group > 65536) {
    throw Error("--scheme: no such group of weights", ErrorKind::Usage)
        .expected("w8:GROUP or w4:GROUP, GROUP from 2 to 65536")
        .got(text);
  }
  scheme.plan.group = *group;
  return scheme;
}

std::int64_t bytes_of_constants(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const NodeId id : graph.nodes_in_order()) {
    const Constant* constant = graph.constant_of(graph.node(id).results.front());
    if (constant) bytes += byte_count(constant->type()).constant();
  }
  return bytes;
}

// Returns a copy of the graph with these values as outputs.
Graph with_outputs(const Graph& graph, const std::vector<ValueId>& values) {
  Graph made = graph;
  made.set_outputs(values);
  made.erase_dead();
  return made;
}

// Runs a graph on samples and observes some of its values.
class ObservedModel {
 public:
  ObservedModel(const Graph& graph, std::vector<ValueId> values, int threads)
      : model_(driver::compile_graph(with_outputs(graph, values)), threads) {
    for (const ValueId value : values) names_.push_back(graph.value(value).name);
  }
  std::vector<Tensor> run(const std::vector<Datum>& inputs) {
    std::vector<Tensor> tensors;
    for (const Datum& output : model_.run(inputs)) tensors.push_back(output.tensor());
    return tensors;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  CompiledModel model_;
  std::vector<std::string> names_;
};

// Calibration state in a file that is replaced atomically.
class CalibrationState {
 public:
  CalibrationState(std::string path, std::string identity)
      : path_(std::move(path)), identity_(std::move(identity)) {}

  // Returns the number of samples seen; fills histograms.
  std::size_t load(std::map<std::string, Histogram>& histograms) const {
    std::ifstream in(path_);
    std::string line;
    if (path_.empty() || !std::getline(in, line) || line != identity_ || !std::getline(in, line))
      return 0;
    const auto done = parse_integer(line);
    if (!done || *done < 0) return 0;
    std::map<std::string, Histogram> found;
    while (std::getline(in, line)) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string::npos) return 0;
      found.emplace(line.substr(0, tab), Histogram::parse(line.substr(tab + 1)));
    }
    histograms = std::move(found);
    return static_cast<std::size_t>(*done);
  }
  void save(std::size_t done, const std::map<std::string, Histogram>& histograms) const {
    if (path_.empty()) return;
    NewFile file(path_);
    file.out() << identity_ << "\n" << done << "\n";
    for (const auto& [name, histogram] : histograms)
      file.out() << name << "\t" << histogram.text() << "\n";
    file.finish();
  }
  void remove() const {
    std::error_code none;
    if (!path_.empty()) std::filesystem::remove(path_, none);
  }

 private:
  std::string path_, identity_;
};

double energy(const Tensor& tensor) {
  double sum = 0;
  for (const float value : tensor.as<float>()) sum += double{value} * double{value};
  return sum;
}
double energy_between(const Tensor& a, const Tensor& b) {
  double sum = 0;
  const std::span<const float> left = a.as<float>(), right = b.as<float>();
  for (std::size_t k = 0; k < left.size(); ++k)
    sum += (double{left[k]} - double{right[k]}) * (double{left[k]} - double{right[k]});
  return sum;
}

class Quantizer {
 public:
  Quantizer(Graph graph, const CalibrationSamples& samples, const QuantizeRequest& request)
      : graph_(std::move(graph)),
        samples_(samples),
        request_(request),
        scheme_(scheme_of(request.scheme)) {}

  QuantizeResult run() {
    result_.bytes_before = bytes_of_constants(graph_);
    if (request_.equalises) {
      passes::Equalised made = passes::equalise_channels(std::move(graph_));
      graph_ = std::move(made.graph);
      result_.equalised = made.pairs.size();
    }
    products_ = passes::quantizable_contractions(graph_, scheme_.plan.only_weights);
    refuse_unknown();
    if (std::ranges::all_of(products_,
                            [](const auto& product) { return !product.reason.empty(); })) {
      throw Error("the model has no contraction that can be quantized", ErrorKind::Unsupported)
          .expected("a convolution or matrix product of f32 with constant weights")
          .got(products_.empty()
                   ? std::string("no products")
                   : concat("'", products_.front().name, "': ", products_.front().reason));
    }
    if (!scheme_.plan.only_weights) calibrate();
    for (const std::string& name : request_.skip)
      scheme_.plan.skipped[name] = "asked for with --skip";
    measure_nodes();
    drop_unread_activations();
    result_.graph = passes::insert_qdq(graph_, scheme_.plan);
    result_.output_error = error_of(result_.graph);
    if (request_.corrects_biases) correct_biases();
    if (request_.target_error > 0) leave_floats();
    result_.bytes_after = bytes_of_constants(result_.graph);
    for (QuantizedNode& node : result_.nodes) {
      const auto skipped = scheme_.plan.skipped.find(node.name);
      if (skipped != scheme_.plan.skipped.end()) node.skipped = skipped->second;
    }
    return std::move(result_);
  }

 private:
  void refuse_unknown() const {
    std::vector<std::string> names;
    for (const passes::QuantizableContraction& product : products_) names.push_back(product.name);
    for (const std::string& name : request_.skip) {
      if (std::ranges::find(names, name) != names.end()) continue;
      throw Error(concat("--skip: no contraction is called '", name, "'"), ErrorKind::Usage)
          .hint(suggest_name(name, names));
    }
  }

  void calibrate() {
    std::vector<ValueId> watched;
    std::set<ValueId> seen;
    std::vector<std::size_t> inputs;  // observed values that are inputs
    std::vector<ValueId> wanted = passes::quantizable_joins(graph_, products_);
    for (const passes::QuantizableContraction& product : products_) {
      if (product.reason.empty()) wanted.push_back(product.observed);
    }
    std::string identity = concat("tenon calibration 1: ", graph_.name, ", ", samples_.size(),
                                  " samples from ", samples_.name(0));
    for (const ValueId value : wanted) {
      if (!seen.insert(value).second) continue;
      identity += concat(", ", graph_.value(value).name);
      const auto input = std::ranges::find(graph_.inputs(), value);
      if (input == graph_.inputs().end()) {
        watched.push_back(value);
      } else {
        inputs.push_back(static_cast<std::size_t>(input - graph_.inputs().begin()));
      }
    }
    const CalibrationState state(request_.state_path, identity);
    result_.resumed = state.load(result_.histograms);
    std::optional<ObservedModel> model;
    if (!watched.empty() && result_.resumed < samples_.size())
      model.emplace(graph_, watched, request_.threads);
    for (std::size_t k = result_.resumed; k < samples_.size(); ++k) {
      const std::vector<Datum> sample = samples_.read(k);
      try {
        for (const std::size_t input : inputs) {
          result_.histograms[graph_.value(graph_.inputs()[input]).name].add(sample[input].tensor());
        }
        if (model) {
          const std::vector<Tensor> values = model->run(sample);
          for (std::size_t at = 0; at < values.size(); ++at)
            result_.histograms[model->names()[at]].add(values[at]);
        }
      } catch (Error& error) {
        if (!error.has_place())
          error.at("sample ", k + 1, " of ", samples_.size(), ", ", samples_.name(k));
        throw;
      }
      state.save(k + 1, result_.histograms);
      if (request_.on_sample) request_.on_sample(k + 1, samples_.size());
      if (request_.is_interrupted && request_.is_interrupted() && k + 1 < samples_.size()) {
        Interrupted error;
        error.got(k + 1, " of ", samples_.size(), " samples seen");
        if (!request_.state_path.empty())
          error.hint("the same command takes it up again from ", request_.state_path);
        throw error;
      }
    }
    result_.samples = samples_.size();
    state.remove();
    for (const auto& [name, histogram] : result_.histograms) {
      const std::int64_t lowest = scheme_.dtype == DType::I8 ? -128 : 0,
                         highest = scheme_.dtype == DType::I8 ? 127 : 255;
      const ValueRange range = choose_range(histogram, request_.rule, 256, scheme_.is_symmetric);
      const ScaleAndZero made = scale_of(range, lowest, highest, scheme_.is_symmetric);
      result_.ranges[name] = range;
      scheme_.plan.activations[name] = {scheme_.dtype, made.scale, made.zero_point};
    }
  }

  std::vector<std::vector<Datum>> some_samples() const {
    std::vector<std::vector<Datum>> some;
    for (std::size_t k = 0; k < std::min(kComparedSamples, samples_.size()); ++k)
      some.push_back(samples_.read(k));
    return some;
  }

  // Duplicates every product in one graph, with float and with quantized operands; both read the
  // float results of their producers.
  void measure_nodes() {
    Graph twins = graph_;
    std::vector<ValueId> outputs;
    for (const passes::QuantizableContraction& product : products_) {
      result_.nodes.push_back(
          {product.name, graph_.node(product.node).op->name, product.reason, 0});
      if (!product.reason.empty()) continue;
      const Node node = twins.node(product.node);
      Graph::NewNode twin{node.op, node.operands, node.attrs, {}, {""}, ""};
      const NodeId made = twins.add_node(std::move(twin), twins.next(product.node));
      outputs.push_back(node.results.front());
      outputs.push_back(twins.node(made).results.front());
    }
    narrow_twins(twins, outputs);
    ObservedModel model(twins, outputs, request_.threads);
    std::vector<double> signal(outputs.size() / 2, 0), noise(outputs.size() / 2, 0);
    for (const std::vector<Datum>& sample : some_samples()) {
      const std::vector<Tensor> values = model.run(sample);
      for (std::size_t k = 0; k < signal.size(); ++k) {
        signal[k] += energy(values[2 * k]);
        noise[k] += energy_between(values[2 * k], values[2 * k + 1]);
        note_shift(twins.value(outputs[2 * k]).name, values[2 * k], values[2 * k + 1]);
      }
    }
    std::size_t at = 0;
    for (QuantizedNode& node : result_.nodes) {
      if (!node.skipped.empty()) continue;
      constexpr double kMostDb = 200;
      node.signal_db = noise[at] > 0 && signal[at] > 0
                           ? std::min(kMostDb, 10 * std::log10(signal[at] / noise[at]))
                           : kMostDb;
      ++at;
    }
  }

  // Records the mean shift of a product's outputs caused by quantized operands.
  void note_shift(const std::string& product, const Tensor& real, const Tensor& narrow) {
    const Shape& shape = real.shape();
    const std::size_t axis =
        std::ranges::find(products_, product, &passes::QuantizableContraction::name)->outputs_axis;
    if (axis >= shape.size() || !graph_.value(graph_.find(product)).type.tensor().layout.is_empty())
      return;
    Shift& shift = shifts_[product];
    const auto channels = static_cast<std::size_t>(shape[axis]);
    std::size_t inner = 1;
    for (std::size_t k = axis + 1; k < shape.size(); ++k)
      inner *= static_cast<std::size_t>(shape[k]);
    shift.sums.resize(channels, 0);
    const std::span<const float> a = real.as<float>(), b = narrow.as<float>();
    for (std::size_t k = 0; k < a.size(); ++k)
      shift.sums[k / inner % channels] += double{a[k]} - double{b[k]};
    shift.count += static_cast<double>(a.size() / channels);
  }

  // Bias correction of quantized products.
  Graph corrected() {
    if (!is_corrected_) return graph_;
    std::vector<passes::BiasChange> changes;
    for (const auto& [product, shift] : shifts_) {
      if (scheme_.plan.skipped.contains(product) || shift.count == 0) continue;
      passes::BiasChange change{product, shift.sums};
      for (double& amount : change.amounts) amount /= shift.count;
      changes.push_back(std::move(change));
    }
    Graph made = graph_;
    result_.corrected = passes::change_biases(made, changes);
    return made;
  }

  // Keeps the correction only if it reduces the output error.
  void correct_biases() {
    is_corrected_ = true;
    Graph quantized = passes::insert_qdq(corrected(), scheme_.plan);
    const double error = error_of(quantized);
    is_corrected_ = result_.corrected > 0 && error < result_.output_error;
    if (!is_corrected_) {
      result_.corrected = 0;
      return;
    }
    result_.output_error = error;
    result_.graph = std::move(quantized);
  }

  // Quantizes the operands of the second of each pair in `outputs` according to the plan.
  void narrow_twins(Graph& twins, const std::vector<ValueId>& outputs) const {
    std::size_t at = 0;
    for (const passes::QuantizableContraction& product : products_) {
      if (!product.reason.empty()) continue;
      const NodeId twin = twins.value(outputs[2 * at++ + 1]).producer;
      const std::string observed = twins.value(product.observed).name;
      twins = passes::quantize_contraction(std::move(twins), twin, observed, scheme_.plan);
    }
  }

  double error_of(const Graph& quantized) const {
    std::vector<ValueId> floats, narrow;
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
      const Type& type = graph_.value(graph_.outputs()[k]).type;
      if (!type.is_tensor() || type.tensor().dtype != DType::F32) continue;
      floats.push_back(graph_.outputs()[k]);
      narrow.push_back(quantized.outputs()[k]);
    }
    if (floats.empty()) return 0;
    ObservedModel before(graph_, floats, request_.threads),
        after(quantized, narrow, request_.threads);
    double signal = 0, noise = 0;
    for (const std::vector<Datum>& sample : some_samples()) {
      const std::vector<Tensor> a = before.run(sample), b = after.run(sample);
      for (std::size_t k = 0; k < a.size(); ++k) {
        signal += energy(a[k]);
        noise += energy_between(a[k], b[k]);
      }
    }
    return signal > 0 ? std::sqrt(noise / signal) : 0;
  }

  // Reverts the products with the largest individual loss to floats, the fewest for which the
  // output error meets the target: found by bisection.
  void leave_floats() {
    if (result_.output_error <= request_.target_error) return;
    std::vector<const QuantizedNode*> order;
    for (const QuantizedNode& node : result_.nodes) {
      if (node.skipped.empty() && !scheme_.plan.skipped.contains(node.name)) order.push_back(&node);
    }
    std::ranges::stable_sort(order, {}, &QuantizedNode::signal_db);
    const passes::QdqPlan all = scheme_.plan;
    const auto attempt = [&](std::size_t count) {
      scheme_.plan = all;
      for (std::size_t k = 0; k < count; ++k)
        scheme_.plan.skipped[order[k]->name] = "left a float for --target-error";
      drop_unread_activations();
      result_.graph = passes::insert_qdq(corrected(), scheme_.plan);
      result_.output_error = error_of(result_.graph);
      return result_.output_error <= request_.target_error;
    };
    std::size_t low = 0, high = order.size();  // low is too few
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (attempt(middle) ? high : low) = middle;
    }
    attempt(high);
  }

  // Drops activations that only float products read.
  void drop_unread_activations() {
    std::set<std::string> dropped, read;
    for (const passes::QuantizableContraction& product : products_) {
      if (!product.reason.empty()) continue;
      (scheme_.plan.skipped.contains(product.name) ? dropped : read)
          .insert(graph_.value(product.observed).name);
    }
    std::erase_if(scheme_.plan.activations, [&](const auto& entry) {
      return dropped.contains(entry.first) && !read.contains(entry.first);
    });
  }

  struct Shift {
    std::vector<double> sums;  // by channel
    double count = 0;
  };

  Graph graph_;
  std::map<std::string, Shift> shifts_;  // by product
  bool is_corrected_ = false;
  const CalibrationSamples& samples_;
  const QuantizeRequest& request_;
  Scheme scheme_;
  std::vector<passes::QuantizableContraction> products_;
  QuantizeResult result_;
};

}  // namespace

void set_field(QuantizeRequest& request, std::string_view setting) {
  const std::size_t mark = setting.find('=');
  const std::string name(setting.substr(0, mark)),
      value(mark == std::string_view::npos ? "" : setting.substr(mark + 1));
  const std::vector<std::string> names = {"equalise", "correct_biases"};
  if (std::ranges::find(names, name) == names.end()) {
    throw Error(concat("no field is called '", name, "'"), ErrorKind::Usage)
        .expected("one of ", join(names, ", "))
        .hint(suggest_name(name, names));
  }
  if (value != "true" && value != "false") {
    throw Error(concat("field '", name, "' cannot be '", value, "'"), ErrorKind::Usage)
        .expected("true or false");
  }
  (name == "equalise" ? request.equalises : request.corrects_biases) = value == "true";
}

Graph ready_to_quantize(Graph graph) {
  passes::require_floats(graph);
  driver::PipelineOptions options;
  options.passes = {"fold-constants", "simplify",    "recognise",
                    "fold-constants", "fold-scales", "fold-constants"};
  return passes::lay_out_weights(driver::run_pipeline(std::move(graph), options));
}

QuantizeResult quantize_model(Graph graph, const CalibrationSamples& samples,
                              const QuantizeRequest& request) {
  return Quantizer(std::move(graph), samples, request).run();
}

}  // namespace tenon::quantize
