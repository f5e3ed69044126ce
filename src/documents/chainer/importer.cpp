#include "documents/chainer/importer.h"

#include "base/text.h"
#include "documents/chainer/functions.h"
#include "documents/chainer/solver.h"
#include "documents/native_node.h"
#include "documents/seeded_weight.h"

#include <algorithm>
#include <map>

namespace tenon::documents::chainer {
namespace {

class ChainerImporter {
 public:
  ChainerImporter(const Tables& tables, std::string_view source)
      : tables_(tables),
        source_(source),
        solution_(solve_shapes(tables, source, {.solution_limit = 1})),
        vars_(tables.variables.size()),
        failed_(tables.variables.size(), 0) {}

  Graph run() {
    refuse_unknown();
    refuse_contradiction();
    add_inputs();
    for (const std::size_t k : topological_order(tables_)) add_function(k);
    if (!unsupported_.empty()) {
      std::string list;
      for (const auto& [what, count] : unsupported_)
        list += concat(list.empty() ? "" : "; ", what, " (", count, ")");
      throw Error("functions that cannot be imported", ErrorKind::Unsupported)
          .at(source_)
          .got(list);
    }
    add_outputs();
    return build_.take();
  }

 private:
  void refuse_unknown() const {
    if (solution_.unknown_functions.empty()) return;
    std::map<std::string, std::size_t> counts;
    for (const std::size_t k : solution_.unknown_functions) ++counts[tables_.forward[k].name];
    std::string list;
    for (const auto& [name, count] : counts)
      list += concat(list.empty() ? "" : ", ", name, " (", count, ")");
    const std::vector<std::string> known = known_function_names();
    throw Error("functions of Chainer that are not known here", ErrorKind::Unsupported)
        .at(source_, ", ", place_of_name(tables_.forward[solution_.unknown_functions[0]]))
        .got(list)
        .hint(suggest_name(counts.begin()->first, known));
  }

  void refuse_contradiction() const {
    if (!solution_.is_solved) {
      const std::size_t variable = solution_.contradicting_variable;
      Error problem(solution_.is_cut_off ? "no shapes were found that give every tensor its size"
                                         : "no shapes give every tensor its size");
      problem.at(source_, ", ", place_of_bytes(tables_, variable));
      std::string where;
      if (solution_.contradicting_function != kNone) {
        const Function& function = tables_.forward[solution_.contradicting_function];
        where = concat(", at ", function.name, " of line ", function.line);
      }
      throw problem.got("variable ", tables_.variables[variable].id, " of ",
                        tables_.variables[variable].bytes, " bytes: ", solution_.contradiction,
                        where);
    }
    for (std::size_t v = 0; v < tables_.variables.size(); ++v) {
      if (solution_.types[v]) continue;
      throw Error("nothing tells the shape of a variable")
          .at(source_, ", ", place_of_bytes(tables_, v))
          .got("variable ", tables_.variables[v].id);
    }
  }

  void add_inputs() {
    std::vector<std::pair<std::int64_t, std::size_t>> inputs;
    for (std::size_t v = 0; v < tables_.variables.size(); ++v) {
      if (!tables_.variables[v].is_input()) continue;
      const std::string& name = tables_.variables[v].name;
      inputs.emplace_back(parse_integer(name).value_or(static_cast<std::int64_t>(v)), v);
    }
    std::sort(inputs.begin(), inputs.end());
    for (const auto& [index, v] : inputs) {
      vars_[v] =
          build_.input(concat("input_", tables_.variables[v].name), Type(*solution_.types[v]));
    }
  }

  // Fan-in of the first reader, for the scale of seeded weights.
  std::int64_t fan_in_of(std::size_t variable, const Function& reader, std::size_t position) const {
    const TensorType& type = *solution_.types[variable];
    if (position == 0 || type.rank() < 2) return 0;
    std::int64_t fan = 1;
    const bool is_filter =
        reader.name == "Convolution2DFunction" || reader.name == "LinearFunction";
    for (std::size_t axis = is_filter ? 1 : 0; axis < type.rank(); ++axis) {
      if (!is_filter && axis == 1) continue;
      fan *= type.dims[axis].constant();
    }
    return std::max<std::int64_t>(fan, 1);
  }

  Var weight(std::size_t variable, const Function& reader, std::size_t position) {
    const Variable& named = tables_.variables[variable];
    const TensorType& type = *solution_.types[variable];
    const std::string name = named.is_intermediate() ? concat("constant_", named.id) : named.name;
    const Shape shape = constants(type.dims);
    // Scales and variances are seeded around one.
    const bool is_norm = reader.name == "BatchNormalization" ||
                         reader.name == "FixedBatchNormalization" ||
                         (reader.find(kOwnOp) != nullptr && type.rank() == 1 && position != 0);
    Constant value = seeded_weight(type.dtype, shape, name, fan_in_of(variable, reader, position));
    if (is_norm && (position == 1 || position == 4) && is_float(type.dtype)) {
      value = Constant::uniform(type.dtype, shape, value.seed(), 0.8, 1.2);
    }
    if (type.layout.is_empty()) return build_.constant(value, free_name(name));
    return build_.normal(free_name(name), to_string(type), value.seed(), value.second());
  }

  std::string free_name(const std::string& name) { return build_.graph().free_name(name); }

  void add_function(std::size_t k) {
    const FunctionView view(tables_, k, source_);
    const Function& function = view.function();
    const bool is_own = function.find(kOwnOp) != nullptr;
    const std::vector<std::size_t>& read = view.inputs();
    std::vector<Var> inputs;
    for (std::size_t position = 0; position < read.size(); ++position) {
      Var& var = vars_[read[position]];
      if (failed_[read[position]] != 0) {
        for (const std::size_t output : function.outputs) failed_[output] = 1;
        return;
      }
      if (!var.is_valid()) var = weight(read[position], function, position);
      inputs.push_back(var);
    }
    if (is_own) {
      inputs.clear();
      for (const Input& input : function.inputs) inputs.push_back(vars_[input.variable]);
    }
    build_.set_node_name("");
    view.refuse_unknown_attributes();
    try {
      const std::vector<Var> outputs =
          is_own ? build_native(parse_native(view.text(kOwnOp)), build_, inputs)
                 : find_rule(function.name)->build(view, build_, inputs);
      if (outputs.size() < function.outputs.size())
        throw view.error(kOwnOp, "the operator gives fewer values than the record has outputs");
      for (std::size_t j = 0; j < function.outputs.size(); ++j) keep_output(view, j, outputs[j]);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Unsupported) {
        ++unsupported_[concat(function.name, ": ", error.summary())];
        for (const std::size_t output : function.outputs) failed_[output] = 1;
        return;
      }
      Error placed = error;
      if (!error.has_place() || error.place().find("line") == std::string::npos) {
        placed.at(source_, ", ", place_of_name(function));
      }
      throw placed;
    }
  }

  // Tenon's inference must agree with the shape derived from the bytes.
  void keep_output(const FunctionView& view, std::size_t position, Var value) {
    const std::size_t variable = view.function().outputs[position];
    const Type& inferred = build_.type(value);
    if (inferred != Type(*solution_.types[variable])) {
      throw Error("a function does not make what the file says it does")
          .at(source_, ", ", place_of_output(view.function(), position))
          .expected(*solution_.types[variable])
          .got(inferred);
    }
    Graph& graph = build_.graph();
    const std::string name = concat(view.function().name, "_", tables_.variables[variable].id);
    graph.rename(ValueId(value.id()), graph.free_name(name));
    vars_[variable] = value;
  }

  // Unread variables are the network's outputs, unless records state otherwise.
  void add_outputs() {
    std::vector<char> is_read(tables_.variables.size(), 0);
    for (const Function& function : tables_.forward) {
      for (const Input& input : function.inputs) is_read[input.variable] = 1;
    }
    std::map<std::int64_t, std::size_t> stated;
    std::vector<std::size_t> plain;
    for (const std::size_t k : topological_order(tables_)) {
      const Function& function = tables_.forward[k];
      const ChainerAttribute* places = function.find(kGraphOutputs);
      const frontends::JsonValue::Array* list =
          places == nullptr ? nullptr : held_by<frontends::JsonValue::Array>(places->value);
      for (std::size_t j = 0; j < function.outputs.size(); ++j) {
        if (list != nullptr && j < list->size()) {
          if (const auto* place = held_by<std::int64_t>((*list)[j]))
            stated[*place] = function.outputs[j];
        } else if (is_read[function.outputs[j]] == 0) {
          plain.push_back(function.outputs[j]);
        }
      }
    }
    for (const auto& [place, variable] : stated) build_.output(vars_[variable]);
    for (const std::size_t variable : plain) build_.output(vars_[variable]);
  }

  const Tables& tables_;
  std::string_view source_;
  ShapeSolution solution_;
  Builder build_;
  std::vector<Var> vars_;
  std::map<std::string, std::size_t> unsupported_;
  std::vector<char> failed_;  // results of unsupported functions
};

}  // namespace

Graph import_tables(const Tables& tables, std::string_view source) {
  return ChainerImporter(tables, source).run();
}

}  // namespace tenon::documents::chainer
