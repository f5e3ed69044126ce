#include "documents/chainer/writer.h"

#include "documents/chainer/solver.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace tenon::documents::chainer {
namespace {

class ChainerWriter {
 public:
  ChainerWriter(const Graph& graph, const NativeNodes& own) : graph_(graph), native_(own) {}

  Tables run() {
    find_natives();
    find_dependents();
    for (const ValueId input : graph_.inputs()) add_variable(input, std::to_string(input_count_++));
    for (const NodeId id : graph_.nodes_in_order()) {
      if (!is_absorbed_.contains(id) && !is_constant(id)) add_node(id);
    }
    for (const ValueId output : graph_.outputs()) {
      if (!graph_.value(output).producer || graph_.constant_of(output) != nullptr) {
        problems_[concat("the output '", graph_.value(output).name, "' is made by no function")] +=
            1;
      }
    }
    if (tables_.forward.empty()) problems_["there is no function"] += 1;
    raise_problems();
    state_outputs();
    state_types();
    add_ranks();
    add_backward();
    return std::move(tables_);
  }

 private:
  bool is_constant(NodeId id) const {
    const Node& node = graph_.node(id);
    return !node.results.empty() && node.results[0] &&
           graph_.constant_of(node.results[0]) != nullptr;
  }

  void find_natives() {
    for (const NodeId id : graph_.nodes_in_order()) {
      if (is_constant(id) || !has_sizes(id)) continue;
      std::optional<NativeFunction> native = native_function(graph_, id);
      if (!native || native_.contains(id)) continue;
      const bool absorbs_own = std::any_of(native->absorbed.begin(), native->absorbed.end(),
                                           [&](NodeId each) { return native_.contains(each); });
      if (absorbs_own) continue;
      for (const NodeId absorbed : native->absorbed) is_absorbed_.insert(absorbed);
      natives_[id] = *std::move(native);
    }
  }

  // Finds values that depend on weights or differentiable inputs.
  void find_dependents() {
    const auto has_gradient = [&](ValueId value) {
      const Type& type = graph_.value(value).type;
      return type.is_tensor() && is_float(type.tensor().dtype);
    };
    for (const ValueId input : graph_.inputs()) {
      if (has_gradient(input)) depends_.insert(input);
    }
    for (const NodeId id : graph_.nodes_in_order()) {
      const Node& node = graph_.node(id);
      bool any = false;
      for (const ValueId operand : node.operands) {
        if (!operand) continue;
        const bool is_weight = graph_.constant_of(operand) != nullptr && has_gradient(operand) &&
                               !fits_text(graph_, operand);
        any = any || is_weight || depends_.contains(operand);
      }
      for (const ValueId result : node.results) {
        if (result && any && has_gradient(result)) depends_.insert(result);
      }
    }
  }

  static bool has_size(const Type& type) {
    return type.is_tensor() && all_constant(type.tensor().dims) &&
           info(type.tensor().dtype).bits > 0;
  }
  bool has_sizes(NodeId id) const {
    const auto fits = [&](ValueId value) { return !value || has_size(graph_.value(value).type); };
    const Node& node = graph_.node(id);
    return std::all_of(node.operands.begin(), node.operands.end(), fits) &&
           std::all_of(node.results.begin(), node.results.end(), fits);
  }

  // Chainer's names are paths; a name extends to the end of its line.
  std::string path_of(const std::string& name) {
    std::string path = name.rfind('/', 0) == 0 ? name : "/" + name;
    for (char& c : path) {
      if (static_cast<unsigned char>(c) < 0x20) c = '?';
    }
    std::string unique = path;
    for (int k = 1; !names_.insert(unique).second; ++k) unique = concat(path, "_", k);
    return unique;
  }

  std::size_t add_variable(ValueId value, std::string name) {
    const auto [found, is_new] = variables_.emplace(value, tables_.variables.size());
    if (!is_new) return found->second;
    const Type& type = graph_.value(value).type;
    Variable variable;
    variable.id = static_cast<std::int64_t>(tables_.variables.size());
    if (has_size(type)) {
      variable.bytes = byte_count(type.tensor()).constant();
    } else {
      problems_[concat("a value of type ", type, " has no size")] += 1;
    }
    variable.name = std::move(name);
    tables_.variables.push_back(std::move(variable));
    values_.push_back(value);
    return found->second;
  }

  std::size_t input_variable(ValueId value) {
    if (const auto found = variables_.find(value); found != variables_.end()) return found->second;
    return add_variable(value, path_of(graph_.value(value).name));
  }

  void add_node(NodeId id) {
    const Node& node = graph_.node(id);
    if (!has_sizes(id)) {
      problems_[concat("'", node.op->name, "' reads or makes a value without a size in bytes")] +=
          1;
      return;
    }
    const auto native = natives_.find(id);
    try {
      if (native != natives_.end() && !reads_number(native->second)) {
        add_native(id, native->second);
      } else {
        add_native_node(id);
      }
    } catch (const Error& error) {
      problems_[error.summary()] += 1;
    }
  }

  // A scalar is not a parameter: the file would store its size but not its value.
  bool reads_number(const NativeFunction& native) const {
    return std::any_of(native.inputs.begin(), native.inputs.end(), [&](ValueId input) {
      const Constant* constant = graph_.constant_of(input);
      return constant != nullptr && constant->shape().empty();
    });
  }

  std::size_t input_position(Function& function, ValueId value,
                             std::map<ValueId, std::size_t>& positions) {
    const auto [found, is_new] = positions.emplace(value, function.inputs.size());
    if (is_new) function.inputs.push_back({input_variable(value), Tag::Value});
    return found->second;
  }

  void add_native(NodeId id, const NativeFunction& native) {
    Function function;
    function.name = native.name;
    function.attributes = native.attributes;
    std::map<ValueId, std::size_t> positions;
    std::vector<std::size_t> called;
    for (const ValueId input : native.inputs) {
      input_position(function, input, positions);
      called.push_back(variables_.at(input));
    }
    for (std::size_t k = 0; k < native.output_count; ++k) {
      function.outputs.push_back(add_variable(graph_.node(id).results[k], "_"));
    }
    // Chainer's retained lists, which may depend on the attributes.
    const Tables alone{{}, {function}, {function}};
    const Retained retained = find_rule(native.name)->retained(FunctionView(alone, 0, "graph"))[0];
    finish(std::move(function), retained, native.trailing, std::move(called));
  }

  void add_native_node(NodeId id) {
    const NativeNode own = native_node(graph_, id);
    const Graph record = parse_native(own.text);
    Function function;
    function.name = camel_case(graph_.op_name(id));
    function.attributes.push_back(attribute(kOwnOp, own.text));
    std::vector<std::size_t> called;
    bool may_flow = false, makes_gradient = false;
    for (const ValueId input : own.inputs) {
      called.push_back(input_variable(input));
      function.inputs.push_back({called.back(), Tag::Value});
      may_flow = may_flow || depends_.contains(input) || graph_.constant_of(input) != nullptr;
    }
    for (const ValueId output : own.outputs) {
      function.outputs.push_back(add_variable(output, "_"));
      makes_gradient = makes_gradient || depends_.contains(output);
    }
    const bool has_gradient = may_flow && makes_gradient;
    finish(std::move(function), has_gradient ? retained_by(id, record) : Retained(), {},
           std::move(called));
    add_types(tables_.forward.back());
  }

  Retained retained_by(NodeId id, const Graph& record) const {
    Retained retained;
    const Node& node = graph_.node(id);
    // An operator without a gradient retains no values.
    if (node.bodies.empty() && !node.op->gradient) return retained;
    try {
      if (node.bodies.empty()) return retained_by_gradient(record);
    } catch (const Error&) {
      // The gradient does not support this case.
    }
    // A body would run again, and unknown gradients may read everything.
    for (std::size_t k = 0; k < record.inputs().size(); ++k)
      retained.inputs.push_back(static_cast<std::int64_t>(k));
    for (std::size_t k = 0; k < record.outputs().size(); ++k)
      retained.outputs.push_back(static_cast<std::int64_t>(k));
    return retained;
  }

  // Appends the attributes common to every function, in Chainer's order.
  void finish(Function function, const Retained& retained,
              const std::vector<ChainerAttribute>& trailing, std::vector<std::size_t> called) {
    function.attributes.push_back(indexes_attribute("_input_indexes_to_retain", retained.inputs));
    function.attributes.push_back(indexes_attribute("_output_indexes_to_retain", retained.outputs));
    function.attributes.insert(function.attributes.end(), trailing.begin(), trailing.end());
    const auto count = static_cast<std::int64_t>(function.outputs.size());
    function.attributes.push_back(integer_attribute("_output_count", count));
    tables_.forward.push_back(std::move(function));
    retained_.push_back(retained);
    called_.push_back(std::move(called));
  }

  void add_types(Function& function) {
    if (function.find(kInputTypes) != nullptr) return;
    frontends::JsonValue::Array inputs, outputs;
    for (const Input& input : function.inputs)
      inputs.emplace_back(to_string(graph_.value(values_[input.variable]).type));
    for (const std::size_t output : function.outputs)
      outputs.emplace_back(to_string(graph_.value(values_[output]).type));
    // Inserted before the lists, after the function's own attributes.
    const auto place = std::find_if(
        function.attributes.begin(), function.attributes.end(),
        [](const ChainerAttribute& each) { return each.name == "_input_indexes_to_retain"; });
    const std::vector<ChainerAttribute> types{attribute(kInputTypes, std::move(inputs)),
                                              attribute(kOutputTypes, std::move(outputs))};
    function.attributes.insert(place, types.begin(), types.end());
  }

  void raise_problems() const {
    if (problems_.empty()) return;
    std::string list;
    for (const auto& [problem, count] : problems_)
      list += concat(list.empty() ? "" : "; ", problem, " (", count, ")");
    throw Error("the graph cannot be written as a training step of Chainer", ErrorKind::Unsupported)
        .got(list);
  }

  // States the outputs in records if they are not simply the unread values.
  void state_outputs() {
    tables_.backward.resize(tables_.forward.size());  // operands_of reads it
    std::unordered_set<std::size_t> is_read;
    for (const Function& function : tables_.forward) {
      for (const Input& input : function.inputs) is_read.insert(input.variable);
    }
    std::vector<ValueId> plain;
    for (const std::size_t k : topological_order(tables_)) {
      for (const std::size_t output : tables_.forward[k].outputs) {
        if (!is_read.contains(output)) plain.push_back(values_[output]);
      }
    }
    if (plain == graph_.outputs()) return;
    std::map<ValueId, std::size_t> places;
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k)
      places.emplace(graph_.outputs()[k], k);
    for (Function& function : tables_.forward) {
      frontends::JsonValue::Array list;
      bool says = false;
      for (const std::size_t output : function.outputs) {
        const auto place = places.find(values_[output]);
        list.push_back(place == places.end()
                           ? frontends::JsonValue()
                           : frontends::JsonValue(static_cast<std::int64_t>(place->second)));
        says = says || place != places.end() || !is_read.contains(output);
      }
      if (says) function.attributes.push_back(attribute(kGraphOutputs, std::move(list)));
    }
  }

  // If the sizes alone do not lead back to these shapes, every record states its types.
  void state_types() {
    bool is_same = false;
    try {
      const ShapeSolution solution = solve_shapes(tables_, "graph", {.solution_limit = 1});
      is_same = solution.is_solved;
      for (std::size_t v = 0; v < values_.size() && is_same; ++v) {
        is_same = solution.types[v] && Type(*solution.types[v]) == graph_.value(values_[v]).type;
      }
    } catch (const Error&) {
      is_same = false;
    }
    if (is_same) return;
    for (Function& function : tables_.forward) add_types(function);
  }

  void add_ranks() {
    const std::vector<std::size_t> producers = producers_of(tables_);
    std::vector<std::int64_t> ranks(tables_.forward.size(), 0);
    for (const std::size_t k : topological_order(tables_)) {
      for (const Input& input : tables_.forward[k].inputs) {
        if (producers[input.variable] != kNone)
          ranks[k] = std::max(ranks[k], ranks[producers[input.variable]] + 1);
      }
      tables_.forward[k].attributes.push_back(integer_attribute("rank", ranks[k]));
      tables_.forward[k].attributes.push_back(attribute("lazy_grad_sum", false));
    }
  }

  void add_backward() {
    for (std::size_t k = 0; k < tables_.forward.size(); ++k) {
      const Function& forward = tables_.forward[k];
      Function& backward = tables_.backward[k];
      backward.name = forward.name;
      backward.attributes = forward.attributes;
      for (const std::size_t output : forward.outputs)
        backward.inputs.push_back({output, Tag::Gradient});
      if (forward.name != "ReLU") {
        for (const std::size_t input : called_[k]) backward.inputs.push_back({input, Tag::Input});
      }
      for (const std::int64_t output : retained_[k].outputs) {
        backward.inputs.push_back({forward.outputs[static_cast<std::size_t>(output)], Tag::Output});
      }
      for (const Input& input : forward.inputs) backward.outputs.push_back(input.variable);
    }
  }

  const Graph& graph_;
  const NativeNodes& native_;
  Tables tables_;
  std::map<NodeId, NativeFunction> natives_;
  std::unordered_set<NodeId> is_absorbed_;
  std::unordered_set<ValueId> depends_;
  std::unordered_map<ValueId, std::size_t> variables_;
  std::vector<ValueId> values_;                   // by variable
  std::vector<Retained> retained_;                // by function
  std::vector<std::vector<std::size_t>> called_;  // operands of each call, by function
  std::unordered_set<std::string> names_;
  std::map<std::string, std::size_t> problems_;
  std::size_t input_count_ = 0;
};

}  // namespace

ChainerAttribute integers_attribute(std::string_view name, const std::vector<std::int64_t>& list) {
  return attribute(name, frontends::JsonValue::integers(list));
}

ChainerAttribute indexes_attribute(std::string_view name, const std::vector<std::int64_t>& list) {
  return list.empty() ? attribute(name, nullptr) : integers_attribute(name, list);
}

Tables tables_of(const Graph& graph, const NativeNodes& own) {
  return ChainerWriter(graph, own).run();
}

}  // namespace tenon::documents::chainer
