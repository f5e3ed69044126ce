#include "testing/verify/reduce.h"

#include "base/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "reference/evaluate.h"

#include <algorithm>
#include <set>

namespace tenon::testing {
namespace {

// Limit on evaluated nodes over all candidates; afterwards the smallest reproducer so far is
// returned.
constexpr std::size_t kNodeBudget = 60000;

using Values = IdMap<ValueId, std::optional<Datum>>;

Values values_in(const Reproducer& reproducer, reference::EvaluateOptions options) {
  Values values(reproducer.graph.value_id_bound());
  options.node_runs_left = nullptr;  // it has run before
  options.on_value = [&](ValueId id, const Datum& datum) { values[id] = datum; };
  reference::evaluate(reproducer.graph, reproducer.inputs, options);
  for (std::size_t k = 0; k < reproducer.inputs.size(); ++k) {
    values[reproducer.graph.inputs()[k]] = reproducer.inputs[k];
  }
  return values;
}

Type type_of(const Datum& datum, const Type& declared) {
  Type type = datum.type();
  if (type.is_tensor() && declared.is_tensor()) type.tensor().layout = declared.tensor().layout;
  return type;
}

// Changes applied while copying a graph.
struct Changes {
  std::function<bool(NodeId)> keeps = [](NodeId) { return true; };
  std::function<std::vector<ValueId>()> outputs;  // default: the outputs of kept nodes
  std::function<Attributes(NodeId, const Attributes&)> attributes;  // default: unchanged
  std::function<Datum(const Datum&)> input_value;
  bool makes_extents_known = false;
};

// Copies the graph with changes. A value without a kept producer becomes an input.
class GraphReduction {
 public:
  GraphReduction(const Reproducer& from, const Values& values, const Changes& changes)
      : from_(from.graph), values_(values), changes_(changes), made_(from.graph.value_id_bound()) {
    into_.graph.name = from_.name;
    for (ValueId input : from_.inputs()) {
      SymbolRanges symbols;
      if (from_.value(input).type.is_tensor()) {
        for (const Dim& dim : from_.value(input).type.tensor().dims) dim.collect_symbols(symbols);
      }
      for (const auto& [symbol, range] : symbols) input_symbols_.insert(symbol);
    }
  }

  Reproducer run() {
    const std::vector<ValueId> outputs = changes_.outputs ? changes_.outputs() : kept_outputs();
    if (outputs.empty()) throw Error("nothing is left");
    mark_needed(outputs);
    for (ValueId input : from_.inputs()) {
      if (is_needed_[input]) add_input(input);
    }
    for (NodeId id : from_.nodes_in_order()) {
      if (is_kept_[id]) continue;
      for (ValueId result : from_.node(id).results) {
        if (result && is_needed_[result]) add_input(result);
      }
    }
    for (NodeId id : from_.nodes_in_order()) {
      if (is_kept_[id]) add_node(id);
    }
    for (ValueId output : outputs) into_.graph.add_output(made_[output]);
    return std::move(into_);
  }

 private:
  std::vector<ValueId> kept_outputs() const {
    std::vector<ValueId> outputs;
    for (ValueId output : from_.outputs()) {
      const NodeId producer = from_.value(output).producer;
      if (producer && changes_.keeps(producer)) outputs.push_back(output);
    }
    // Drops nodes that only dropped nodes read.
    for (NodeId id : from_.nodes_in_order()) {
      if (!changes_.keeps(id)) continue;
      bool is_read = false;
      for (ValueId result : from_.node(id).results) {
        if (!result) continue;
        is_read |= from_.is_output(result);
        for (NodeId reader : from_.readers(result)) is_read |= changes_.keeps(reader);
      }
      if (is_read) continue;
      for (ValueId result : from_.node(id).results) {
        if (result) outputs.push_back(result);
      }
    }
    return outputs;
  }

  void mark_needed(const std::vector<ValueId>& outputs) {
    for (ValueId output : outputs) is_needed_[output] = true;
    for (NodeId id = from_.last(); id; id = previous(id)) {
      const Node& node = from_.node(id);
      const bool is_read =
          std::any_of(node.results.begin(), node.results.end(),
                      [&](ValueId result) { return result && is_needed_[result]; });
      if (!is_read || !changes_.keeps(id)) continue;
      is_kept_[id] = true;
      for (ValueId operand : node.operands) {
        if (operand) is_needed_[operand] = true;
      }
    }
  }

  NodeId previous(NodeId id) {
    if (order_.empty()) {
      NodeId last;
      for (NodeId node : from_.nodes_in_order()) {
        order_.push_back(node);
        previous_[node] = last;
        last = node;
      }
    }
    return previous_[id];
  }

  void add_input(ValueId id) {
    TENON_ASSERT(values_[id], "every value was recorded");
    const Datum datum = changes_.input_value ? changes_.input_value(*values_[id]) : *values_[id];
    const Value& value = from_.value(id);
    Type type = changes_.input_value ? type_of(datum, value.type) : value.type;
    if (changes_.makes_extents_known || !has_input_symbols_only(type))
      type = type_of(datum, value.type);
    made_[id] = into_.graph.add_input(value.name, type);
    into_.inputs.push_back(datum);
  }

  bool has_input_symbols_only(const Type& type) const {
    if (!type.is_tensor()) return type.is_known();
    SymbolRanges symbols;
    for (const Dim& dim : type.tensor().dims) dim.collect_symbols(symbols);
    return std::all_of(symbols.begin(), symbols.end(),
                       [&](const auto& symbol) { return input_symbols_.contains(symbol.first); });
  }

  void add_node(NodeId id) {
    const Node& node = from_.node(id);
    Graph::NewNode copy{node.op, {}, node.attrs, node.bodies, {}, node.name};
    if (changes_.attributes) copy.attrs = changes_.attributes(id, node.attrs);
    for (ValueId operand : node.operands)
      copy.operands.push_back(operand ? made_[operand] : ValueId{});
    for (ValueId result : node.results)
      copy.results.push_back(result ? from_.value(result).name : "_");
    const NodeId made = into_.graph.add_node(std::move(copy));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      const ValueId result = into_.graph.node(made).results[k];
      made_[node.results[k]] = result;
      if (from_.has_stated_type(node.results[k]) && !changes_.input_value) {
        into_.graph.set_type(result, from_.value(node.results[k]).type);
      }
    }
  }

  const Graph& from_;
  const Values& values_;
  const Changes& changes_;
  Reproducer into_;
  IdMap<ValueId, ValueId> made_;
  IdMap<ValueId, char> is_needed_;
  IdMap<NodeId, char> is_kept_;
  std::vector<NodeId> order_;
  IdMap<NodeId, NodeId> previous_;
  std::set<std::string> input_symbols_;
};

// Truncates axes of extent `from` to `to`.
Tensor shrunk(const Tensor& tensor, std::int64_t from, std::int64_t to) {
  Shape shape = tensor.shape();
  std::replace(shape.begin(), shape.end(), from, to);
  if (shape == tensor.shape()) return tensor;
  Tensor result(tensor.dtype(), shape);
  for (std::int64_t k = 0; k < result.size(); ++k) {
    std::int64_t rest = k, source = 0, stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      source += rest % shape[axis] * stride;
      rest /= shape[axis];
      stride *= tensor.shape()[axis];
    }
    if (tensor.dtype() == DType::String) {
      result.mutable_strings()[static_cast<std::size_t>(k)] =
          tensor.strings()[static_cast<std::size_t>(source)];
      continue;
    }
    const std::size_t width = info(tensor.dtype()).storage_bytes;
    const auto bytes = tensor.bytes().subspan(static_cast<std::size_t>(source) * width, width);
    std::copy(bytes.begin(), bytes.end(),
              result.mutable_bytes().begin() +
                  static_cast<std::ptrdiff_t>(static_cast<std::size_t>(k) * width));
  }
  return result;
}

Attributes shrunk(const Attributes& attrs, std::int64_t from, std::int64_t to) {
  Attributes result;
  for (const auto& [name, value] : attrs) {
    if (const auto* constant = std::get_if<Constant>(&value)) {
      const Shape& shape = constant->shape();
      const bool has = std::find(shape.begin(), shape.end(), from) != shape.end();
      if (has)
        result.set(name, Constant(shrunk(constant->materialise(), from, to)));
      else
        result.set(name, value);
    } else if (const auto* dims = std::get_if<Dims>(&value)) {
      Dims changed = *dims;
      for (Dim& dim : changed) {
        if (dim == Dim(from)) dim = to;
      }
      result.set(name, changed);
    } else {
      result.set(name, value);
    }
  }
  return result;
}

class Reducer {
 public:
  Reducer(Reproducer reproducer, const Shows& shows, const reference::EvaluateOptions& how)
      : best_(std::move(reproducer)), shows_(shows), how_(how) {
    values_ = values_in(best_, how_);
  }

  Reproducer run() {
    keep_one_output();
    make_extents_known();
    for (std::size_t nodes = 0; nodes != best_.graph.node_count();) {
      nodes = best_.graph.node_count();
      leave_nodes_out();
      keep_one_output();
    }
    make_extents_known();
    drop_attributes();
    shrink_extents();
    make_elements_plain();
    return std::move(best_);
  }

 private:
  bool attempt(const Changes& changes) {
    if (spent_ > kNodeBudget) return false;
    Reproducer tried;
    try {
      tried = GraphReduction(best_, values_, changes).run();
      spent_ += tried.graph.node_count() + 1;
      if (!problems_of(tried.graph).empty() || !shows_(tried)) return false;
      Values values = values_in(tried, how_);
      best_ = std::move(tried);
      values_ = std::move(values);
      return true;
    } catch (const std::exception&) {  // an invalid graph, or one that does not run
      return false;
    }
  }

  // Starts with the last outputs, which tend to depend on most nodes.
  void keep_one_output() {
    if (best_.graph.outputs().size() < 2) return;
    for (std::size_t k = best_.graph.outputs().size(); k-- > 0;) {
      Changes changes;
      changes.outputs = [&] { return std::vector<ValueId>{best_.graph.outputs()[k]}; };
      if (attempt(changes)) return;
    }
  }

  // Delta debugging: drops ranges of nodes, halves first, then smaller ones.
  void leave_nodes_out() {
    for (std::size_t part = std::max<std::size_t>(1, best_.graph.node_count() / 2);; part /= 2) {
      for (std::size_t begin = 0; begin < best_.graph.node_count();) {
        std::vector<NodeId> order;
        for (NodeId id : best_.graph.nodes_in_order()) order.push_back(id);
        IdMap<NodeId, char> is_out;
        for (std::size_t k = begin; k < std::min(begin + part, order.size()); ++k)
          is_out[order[k]] = true;
        Changes changes;
        changes.keeps = [&](NodeId id) { return !is_out[id]; };
        if (!attempt(changes)) begin += part;
      }
      if (part <= 1) return;
    }
  }

  void make_extents_known() {
    Changes changes;
    changes.makes_extents_known = true;
    const bool has_symbols =
        std::any_of(best_.graph.inputs().begin(), best_.graph.inputs().end(), [&](ValueId input) {
          const Type& type = best_.graph.value(input).type;
          return !type.is_tensor() || !all_constant(type.tensor().dims);
        });
    if (has_symbols) attempt(changes);
  }

  void drop_attributes() {
    for (std::size_t position = 0; position < best_.graph.node_count(); ++position) {
      for (std::size_t k = attributes_at(position).size(); k-- > 0;) {
        const std::string name =
            (attributes_at(position).begin() + static_cast<std::ptrdiff_t>(k))->first;
        const NodeId at = node_at(position);
        Changes changes;
        changes.attributes = [&](NodeId id, const Attributes& attrs) {
          Attributes fewer = attrs;
          if (id == at) fewer.erase(name);
          return fewer;
        };
        attempt(changes);
      }
    }
  }

  NodeId node_at(std::size_t position) const {
    NodeId id = best_.graph.first();
    for (; position > 0; --position) id = best_.graph.next(id);
    return id;
  }
  const Attributes& attributes_at(std::size_t position) const {
    return best_.graph.node(node_at(position)).attrs;
  }

  // Reduces each extent, at all its occurrences, to 1, to 2 or to its half.
  void shrink_extents() {
    std::set<std::int64_t> extents;
    for (const Datum& input : best_.inputs) {
      if (input.is_tensor())
        extents.insert(input.tensor().shape().begin(), input.tensor().shape().end());
    }
    for (NodeId id : best_.graph.nodes_in_order()) {
      for (ValueId result : best_.graph.node(id).results) {
        const Constant* constant = result ? best_.graph.constant_of(result) : nullptr;
        if (constant) extents.insert(constant->shape().begin(), constant->shape().end());
      }
    }
    for (auto from = extents.rbegin(); from != extents.rend(); ++from) {
      for (std::int64_t to : {std::int64_t{1}, std::int64_t{2}, (*from + 1) / 2}) {
        if (to >= *from) continue;
        Changes changes;
        changes.input_value = [&](const Datum& datum) {
          return datum.is_tensor() ? Datum(shrunk(datum.tensor(), *from, to)) : datum;
        };
        changes.attributes = [&](NodeId, const Attributes& attrs) {
          return shrunk(attrs, *from, to);
        };
        if (attempt(changes)) break;
      }
    }
  }

  void make_elements_plain() {
    for (std::size_t k = 0; k < best_.inputs.size(); ++k) {
      if (!best_.inputs[k].is_tensor()) continue;
      const Tensor& tensor = best_.inputs[k].tensor();
      if (tensor.dtype() == DType::String || tensor.size() == 0) continue;
      for (double element : {0.0, 1.0}) {
        Reproducer tried = best_;
        const Constant plain =
            Constant::splat(Tensor::scalar(tensor.dtype(), element), tensor.shape());
        tried.inputs[k] = plain.materialise();
        if (exactly(tried)) break;
      }
    }
  }

  bool exactly(Reproducer& tried) {
    try {
      spent_ += tried.graph.node_count() + 1;
      if (spent_ > kNodeBudget || !shows_(tried)) return false;
    } catch (const std::exception&) {
      return false;
    }
    best_ = std::move(tried);
    return true;
  }

  Reproducer best_;
  Values values_;
  const Shows& shows_;
  const reference::EvaluateOptions& how_;
  std::size_t spent_ = 0;
};

std::string print_datum(const Datum& datum) {
  if (datum.is_tensor()) return print(Constant(datum.tensor()));
  std::string text = datum.kind() == Type::Kind::Sequence ? "seq(" : "optional(";
  for (std::size_t k = 0; k < datum.items().size(); ++k) {
    text += (k ? "; " : "") + print_datum(datum.items()[k]);
  }
  return text + ")";
}

}  // namespace

Reproducer reduce(Reproducer reproducer, const Shows& shows,
                  const reference::EvaluateOptions& how) {
  return Reducer(std::move(reproducer), shows, how).run();
}

std::string print_reproducer(const Reproducer& reproducer) {
  std::string text = print(reproducer.graph);
  for (std::size_t k = 0; k < reproducer.inputs.size(); ++k) {
    const std::string& name = reproducer.graph.value(reproducer.graph.inputs()[k]).name;
    text += concat("# ", print_name(name), " = ", print_datum(reproducer.inputs[k]), "\n");
  }
  return text;
}

}  // namespace tenon::testing
