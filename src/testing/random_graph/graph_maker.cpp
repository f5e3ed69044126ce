#include "testing/random_graph/graph_maker.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "testing/random_graph/random_graph.h"
#include "testing/verify/pass_check.h"

#include <algorithm>
#include <stdexcept>

namespace tenon::testing {
namespace {

constexpr std::int64_t kMaxElements = 600, kMaxWideElements = 30000;
constexpr std::int64_t kMostResultBytes = 1 << 20;

// Returns a node with the types of its operands.
std::string print_alone(const Graph& graph, NodeId id) {
  std::string text = concat(graph.op_name(id), "(");
  for (ValueId operand : graph.node(id).operands) {
    text += operand ? concat(graph.value(operand).type, ", ") : "_, ";
  }
  text += ")";
  for (const auto& [name, value] : graph.node(id).attrs)
    text += concat(" ", name, " = ", print(value));
  return text;
}

}  // namespace

GraphMaker::GraphMaker(std::uint64_t seed, std::int64_t max_elements)
    : random(seed), graph_("random"), build_(graph_), max_elements_(max_elements) {
  if (!random.chance(35)) return;
  const Range ranges[] = {{1, 8}, {0, kMaxExtent}, {2, 6}, {0, 4}};
  for (const char* name : {"N", "S"}) {
    symbol_dims_.push_back(Dim::symbol(name, ranges[random.below(std::size(ranges))]));
    symbols_.emplace(name, Dim(random.between(2, 4)));
    if (random.chance(50)) break;
  }
}

const TensorType* GraphMaker::tensor_type(ValueId value) const {
  const Type& type = graph_.value(value).type;
  return type.is_tensor() ? &type.tensor() : nullptr;
}

DType GraphMaker::any_float() {
  if (random.chance(65)) return DType::F32;
  static const std::vector<DType> floats = {DType::F64, DType::F64, DType::F16, DType::F16,
                                            DType::BF16};
  return random.pick(floats);
}

DType GraphMaker::any_dtype() {
  if (random.chance(60)) return any_float();
  if (random.chance(60)) {
    static const std::vector<DType> common = {DType::I64, DType::I64, DType::I32,  DType::I32,
                                              DType::I16, DType::I8,  DType::U64,  DType::U32,
                                              DType::U16, DType::U8,  DType::Bool, DType::Bool};
    return random.pick(common);
  }
  return all_dtypes()[random.below(all_dtypes().size())].dtype;
}

Dim GraphMaker::any_extent() {
  if (!symbol_dims_.empty() && random.chance(20)) return random.pick(symbol_dims_);
  if (random.chance(2)) return 0;
  // Around vector lengths.
  static const std::vector<std::int64_t> longer = {6, 8, 9, 15, 16, 17, 31, 33};
  if (random.chance(6)) return random.pick(longer);
  static const std::vector<std::int64_t> extents = {1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 7};
  return random.pick(extents);
}

Dims GraphMaker::any_dims(std::size_t max_rank) {
  static const std::vector<std::size_t> ranks = {0, 1, 1, 2, 2, 2, 3, 3, 4, 5};
  Dims dims(std::min(random.pick(ranks), max_rank));
  for (Dim& dim : dims) dim = any_extent();
  // Limits the number of large extents.
  if (dims.size() > 3) {
    for (Dim& dim : dims) {
      if (dim.is_constant() && dim.constant() > 3) dim = 2;
    }
  }
  return dims;
}

ValueId GraphMaker::new_input(const TensorType& type) {
  const Dims dims = substitute(type.dims, symbols_);
  if (!all_constant(dims)) throw Error("an extent that data decides is none for an input");
  const ValueId input =
      graph_.add_input(graph_.free_name(concat("x", graph_.inputs().size())), type);
  sample_[input] = Datum(trial_tensor(type.dtype, constants(dims),
                                      {TrialKind::Ordinary, TrialKind::Ordinary, random.next()}));
  usable_.push_back(input);
  return input;
}

ValueId GraphMaker::constant_of(DType dtype, const Dims& dims, TrialKind kind) {
  const Tensor value = trial_tensor(dtype, constants(dims), {kind, kind, random.next()});
  const ValueId made(build_.constant(Constant(value)).id());
  run_new_nodes();
  return made;
}

ValueId GraphMaker::new_value(DType dtype, const Dims& dims, TrialKind kind) {
  if (all_constant(dims) && random.chance(45)) return constant_of(dtype, dims, kind);
  return new_input(TensorType{dtype, dims, {}});
}

ValueId GraphMaker::value_of(DType dtype, const Dims& dims) {
  if (random.chance(60)) {
    const auto found =
        find([&](const TensorType& type) { return type.dtype == dtype && type.dims == dims; });
    if (found) return *found;
  }
  static const std::vector<TrialKind> kinds = {TrialKind::Ordinary, TrialKind::Ordinary,
                                               TrialKind::Quiet, TrialKind::Edges};
  return new_value(dtype, dims, random.pick(kinds));
}

ValueId GraphMaker::any_tensor() {
  if (random.chance(75)) {
    if (const auto found = find([](const TensorType&) { return true; })) return *found;
  }
  return value_of(any_dtype(), any_dims(5));
}

void GraphMaker::run_new_nodes() {
  for (; next_node_ < graph_.node_id_bound(); ++next_node_) {
    const NodeId id(next_node_);
    if (!graph_.is_live(id)) continue;
    const Node& node = graph_.node(id);
    std::vector<std::optional<Datum>> operands;
    bool can_run = true;
    for (ValueId operand : node.operands) {
      can_run &= !operand || is_usable(operand);
      operands.push_back(operand ? sample_[operand] : std::nullopt);
    }
    if (!can_run) continue;
    reference::EvaluateOptions options;
    options.thread_count = 1;
    options.node_runs_left = std::make_shared<std::int64_t>(200);
    options.max_result_bytes = kMostResultBytes;
    std::vector<Datum> results;
    try {
      results = reference::evaluate_node(graph_, id, operands, symbols_, options);
    } catch (const Error&) {
      continue;
    } catch (const InternalError& error) {  // a bug of the operator: names it
      throw std::runtime_error(concat(error.what(), " in ", print_alone(graph_, id)));
    }
    const bool is_small = std::all_of(results.begin(), results.end(), [&](const Datum& result) {
      return !result.is_tensor() || result.tensor().size() <= max_elements_;
    });
    if (!is_small) continue;
    ++usable_node_count_;
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      sample_[node.results[k]] = results[k];
      usable_.push_back(node.results[k]);
    }
  }
}

Graph GraphMaker::finish() {
  std::vector<ValueId> outputs;
  for (ValueId value : usable_) {
    if (!graph_.value(value).producer || graph_.constant_of(value)) continue;
    const auto& readers = graph_.readers(value);
    const bool is_read = std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
      const auto& results = graph_.node(reader).results;
      return std::any_of(results.begin(), results.end(),
                         [&](ValueId made) { return made && is_usable(made); });
    });
    if (!is_read || random.chance(5)) outputs.push_back(value);
  }
  if (outputs.empty()) throw Error("nothing was made");
  graph_.set_outputs(outputs);
  graph_.erase_dead();
  // Copies the graph without inputs that failed attempts left unread.
  Graph clean("random");
  IdMap<ValueId, ValueId> copies(graph_.value_id_bound());
  for (ValueId input : graph_.inputs()) {
    if (!graph_.readers(input).empty())
      copies[input] = clean.add_input(graph_.value(input).name, graph_.value(input).type);
  }
  for (NodeId id : graph_.nodes_in_order()) {
    const Node& node = graph_.node(id);
    Graph::NewNode copy{node.op, {}, node.attrs, node.bodies, {}, node.name};
    for (ValueId operand : node.operands)
      copy.operands.push_back(operand ? copies[operand] : ValueId{});
    for (ValueId result : node.results)
      copy.results.push_back(result ? graph_.value(result).name : "_");
    const NodeId made = clean.add_node(std::move(copy));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      copies[node.results[k]] = clean.node(made).results[k];
      if (graph_.has_stated_type(node.results[k])) {
        clean.set_type(copies[node.results[k]], graph_.value(node.results[k]).type);
      }
    }
  }
  for (ValueId output : outputs) clean.add_output(copies[output]);
  return clean;
}

Graph random_graph(const RandomGraphOptions& options) {
  // An attempt may produce a graph that only runs on the sample; the next one has another seed.
  for (std::uint64_t attempt = 0;; ++attempt) {
    TENON_ASSERT(attempt < 100, "some attempt gives a graph that runs");
    GraphMaker maker(options.seed * 1000003 + attempt,
                     options.is_wide ? kMaxWideElements : kMaxElements);
    const auto wanted = static_cast<std::size_t>(std::max(1, options.node_count));
    if (options.is_wide) {
      add_wide_convolution(maker);
      maker.run_new_nodes();
    }
    for (std::size_t tries = 0; tries < 40 * wanted && maker.usable_node_count() < wanted;
         ++tries) {
      try {
        const std::size_t choice = maker.random.below(100);
        if (choice < 18)
          add_motif(maker);
        else if (choice < 26)
          add_contraction(maker);
        else
          add_random_node(maker);
      } catch (const Error&) {
        // The operator or a step of the motif refused; earlier nodes stay.
      }
      maker.run_new_nodes();
    }
    try {
      Graph graph = maker.finish();
      verify(graph);
      PassCheckOptions settings;
      settings.trial_count = 1;
      settings.thread_count = 1;
      settings.max_node_runs = 2000;
      settings.max_result_bytes = kMostResultBytes;
      PassChecker(graph, settings);
      graph.name = concat("random_", options.seed);
      return graph;
    } catch (const Error&) {
    }
  }
}

Graph random_graph(std::string_view spec) {
  const std::size_t mark = spec.find('?');
  const auto refuse = [&] {
    throw Error("cannot read a random graph's description", ErrorKind::Usage)
        .expected("random:SEED or random:SEED?nodes=COUNT,wide=1")
        .got("random:", spec);
  };
  RandomGraphOptions options;
  const auto seed = parse_integer(trim(spec.substr(0, mark)));
  if (!seed || *seed < 0) refuse();
  options.seed = static_cast<std::uint64_t>(*seed);
  if (mark != std::string_view::npos) {
    for (const std::string& setting : split(spec.substr(mark + 1), ',')) {
      const std::vector<std::string> parts = split(setting, '=');
      const auto number = parts.size() == 2 ? parse_integer(parts[1]) : std::nullopt;
      if (number && parts[0] == "nodes" && *number >= 1 && *number <= 1000) {
        options.node_count = static_cast<int>(*number);
      } else if (number && parts[0] == "wide" && *number >= 0 && *number <= 1) {
        options.is_wide = *number == 1;
      } else {
        refuse();
      }
    }
  }
  return random_graph(options);
}

}  // namespace tenon::testing
