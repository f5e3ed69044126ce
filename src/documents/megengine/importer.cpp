#include "documents/megengine/importer.h"

#include "base/text.h"
#include "frontends/known_names.h"
#include "ir/text.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <map>

namespace tenon::documents::megengine {
namespace {

// Aborts the import of an operator that depends on operators that were already reported.
struct ImportAbandoned {};

constexpr std::size_t kShownProblems = 50;

// Parameters of each type in any version of MegEngine.
struct TypeParams {
  std::string_view types, params;
};
constexpr TypeParams kTypeParams[] = {
    {"Elemwise", "mode"},
    {"PowC", "exp"},
    {"Reduce", "mode axis data_type"},
    {"Softmax SoftmaxForward Concat Reshape GetVarShape", "axis"},
    {"TypeCvt", "dtype"},
    {"ConvolutionForward ConvolutionBackwardData ConvolutionBackwardFilter",
     "mode pad_h pad_w stride_h stride_w dilate_h dilate_w sparse format compute_mode data_type"},
    {"ConvBiasForward ConvBias",
     "mode pad_h pad_w stride_h stride_w dilate_h dilate_w sparse format compute_mode data_type "
     "nonlineMode output_block_size"},
    {"PoolingForward", "mode pad_h pad_w stride_h stride_w window_h window_w format"},
    {"MatrixMul BatchedMatrixMul", "transposeA transposeB compute_mode format data_type"},
    {"BatchNorm BatchNormForward", "param_dim fwd_mode epsilon avg_factor scale bias"},
    {"AddUpdate", "alpha beta bias disable"},
    {"Dimshuffle", "ndim pattern"},
    {"AxisAddRemove", "nr_desc desc"},
};

[[noreturn]] void raise_unsupported(const MegEngineProfile& profile, const Inference& inference) {
  std::map<std::string, std::size_t> counts;
  for (const Inference::Problem& problem : inference.problems) {
    if (!problem.is_unsupported) continue;
    ++counts[concat(profile.graph_exec.operators[problem.opr].type, ": ", problem.message)];
  }
  std::string text = concat("cannot import the profile: ", counts.size(),
                            counts.size() == 1 ? " thing is" : " things are", " not supported");
  std::size_t shown = 0;
  for (const auto& [what, count] : counts) {
    if (shown++ == kShownProblems) break;
    text += concat("\n  - ", what, " (", count, count == 1 ? " operator)" : " operators)");
  }
  throw Error(std::move(text), ErrorKind::Unsupported).at("$.graph_exec.operator");
}

}  // namespace

const std::unordered_map<std::string_view, MegEngineImporter::Handler>&
MegEngineImporter::handlers() {
  static const std::unordered_map<std::string_view, Handler> table = {
      {"ImmutableTensor", &MegEngineImporter::constant},
      {"SharedDeviceTensor", &MegEngineImporter::constant},
      {"SharedDeviceTensorWithFormat", &MegEngineImporter::constant},
      {"MultipleDeviceTensorHolder", &MegEngineImporter::constant},
      {"MultipleDeviceTensorWithFormatHolder", &MegEngineImporter::constant},
      {"InputCallback", &MegEngineImporter::graph_input},
      {"Host2DeviceCopy", &MegEngineImporter::graph_input},
      {"VolatileSharedDeviceTensor", &MegEngineImporter::graph_input},
      {"OutputCallback", &MegEngineImporter::output_callback},
      {"Identity", &MegEngineImporter::pass_on},
      {"Copy", &MegEngineImporter::pass_on},
      {"MarkNoBroadcastElemwise", &MegEngineImporter::pass_on},
      {"MarkDynamicVar", &MegEngineImporter::pass_on},
      {"VirtualDep", &MegEngineImporter::pass_on},
      {"RequireInputDynamicStorage", &MegEngineImporter::pass_on},
      {"AddUpdate", &MegEngineImporter::update},
      {"Elemwise", &MegEngineImporter::elemwise},
      {"PowC", &MegEngineImporter::power},
      {"Reduce", &MegEngineImporter::reduce},
      {"Softmax", &MegEngineImporter::softmax},
      {"SoftmaxForward", &MegEngineImporter::softmax},
      {"TypeCvt", &MegEngineImporter::convert},
      {"ConvolutionForward", &MegEngineImporter::convolution},
      {"ConvBiasForward", &MegEngineImporter::convolution_bias},
      {"ConvBias", &MegEngineImporter::convolution_bias},
      {"ConvolutionBackwardData", &MegEngineImporter::convolution_backward_data},
      {"ConvolutionBackwardFilter", &MegEngineImporter::convolution_backward_filter},
      {"PoolingForward", &MegEngineImporter::pooling},
      {"MatrixMul", &MegEngineImporter::matrix_mul},
      {"BatchedMatrixMul", &MegEngineImporter::matrix_mul},
      {"BatchNorm", &MegEngineImporter::batch_norm},
      {"BatchNormForward", &MegEngineImporter::batch_norm},
      {"Reshape", &MegEngineImporter::reshape},
      {"Broadcast", &MegEngineImporter::broadcast},
      {"Concat", &MegEngineImporter::concat_all},
      {"Dimshuffle", &MegEngineImporter::dimshuffle},
      {"AxisAddRemove", &MegEngineImporter::axis_add_remove},
      {"Subtensor", &MegEngineImporter::subtensor},
      {"GetVarShape", &MegEngineImporter::get_var_shape},
  };
  return table;
}

const VarNode& MegEngineImporter::input_var(std::size_t k) const {
  if (k >= input_count()) throw Error(concat("input ", k, " is missing"));
  return profile_.graph_exec.vars[index_.inputs[opr_][k]];
}

Var MegEngineImporter::input(std::size_t k) {
  if (k >= input_count()) throw Error(concat("input ", k, " is missing"));
  const ValueId value = value_[index_.inputs[opr_][k]];
  if (!value) {
    if (is_workspace(input_var(k))) throw Error("a workspace is read").got(input_var(k).name);
    throw ImportAbandoned{};
  }
  return {&builder_, value.index()};
}

std::vector<Var> MegEngineImporter::inputs() {
  std::vector<Var> list;
  for (std::size_t k = 0; k < input_count(); ++k) list.push_back(input(k));
  return list;
}

Extents MegEngineImporter::extents(Var value) const {
  const Type& type = builder_.type(value);
  if (!type.is_tensor() || !all_constant(type.tensor().dims)) throw Error("the shape is not known");
  return constants(type.tensor().dims);
}

std::optional<Extents> MegEngineImporter::host_values(std::size_t k) {
  const std::size_t var = index_.inputs[opr_].at(k);
  if (const ValueId value = value_[var]) {
    const Dims* known = builder_.graph().known_elements(value);
    const Constant* constant = builder_.graph().constant_of(value);
    if (constant && constant->kind() != Constant::Kind::Dense) known = nullptr;  // seeded weight
    if (known != nullptr && all_constant(*known)) return constants(*known);
  }
  if (const auto* stated = stated_value(profile_.graph_exec.vars[var])) {
    Extents elements;
    for (double element : *stated) {
      if (!(std::abs(element) < 1e15)) return std::nullopt;
      elements.push_back(static_cast<std::int64_t>(element));
    }
    return elements;
  }
  return std::nullopt;
}

Extents MegEngineImporter::stated_output(std::size_t k) const {
  return stated_shape(profile_, index_, index_.outputs[opr_].at(k));
}

std::optional<DType> MegEngineImporter::stated_dtype(std::size_t var, const Extents& shape) const {
  const VarNode& node = profile_.graph_exec.vars[var];
  if (node.mem_plan) return dtype_of(node.mem_plan->layout.dtype);
  const auto span = stated_span(node);
  const std::int64_t count = count_of(shape);
  if (!span || count == 0) return std::nullopt;
  if (*span == saturating_product(count, 2)) return DType::F16;
  if (*span == count) return DType::U8;
  return std::nullopt;
}

// Tenon writes the layout as the format, if it is known.
TensorType MegEngineImporter::stated_type(std::size_t var, DType dtype,
                                          const Extents& shape) const {
  TensorType type{dtype, Dims(shape.begin(), shape.end()), {}};
  const VarNode& node = profile_.graph_exec.vars[var];
  if (!node.mem_plan) return type;
  for (const auto& [name, value] : node.mem_plan->layout.other) {
    const auto* format = std::get_if<std::string>(&value.value);
    if (name != "format" || format == nullptr || *format == "DEFAULT") continue;
    if (is_own_type(*format)) {
      const Graph alone = parse_graph(*format, all_ops(), "format");
      if (alone.inputs().size() != 1 || !alone.value(alone.inputs()[0]).type.is_tensor())
        throw Error("the format is no type").got(*format);
      return alone.value(alone.inputs()[0]).type.tensor();
    }
    if (*format == kScalarFormat) {
      type.dims.clear();
      continue;
    }
    type.layout = tenon::Layout(*format);
    if (type.layout.rank() != shape.size())
      throw Error("the format has another rank than the shape").got(*format);
  }
  return type;
}

std::string MegEngineImporter::value_name(std::string_view suffix) const {
  std::string name = short_name(opr().name);
  name += suffix;
  return name.empty() || name == "_" ? concat("var", opr().id) : name;
}

void MegEngineImporter::define(std::size_t k, Var value) {
  Graph& graph = builder_.graph();
  const ValueId id(value.id());
  value_[index_.outputs[opr_].at(k)] = id;
  const std::string name = value_name(k == 0 ? "" : concat(":", k));
  if (graph.value(id).name != name) graph.rename(id, graph.free_name(name));
}

void MegEngineImporter::forward(std::size_t k, Var value) {
  value_[index_.outputs[opr_].at(k)] = ValueId(value.id());
}

void MegEngineImporter::define_from(Var x, Var value) {
  return value.id() == x.id() ? forward(0, value) : define(0, value);
}

void MegEngineImporter::require_param(std::string_view name) const {
  if (param().has(name)) return;
  unsupported(concat("the footprint states no '", name, "'"));
}

void MegEngineImporter::unsupported(std::string what) const {
  throw Error(std::move(what), ErrorKind::Unsupported);
}

void MegEngineImporter::refuse_unknown_params() const {
  const OprFootprint* footprint = index_.footprint[opr_];
  const auto* object = footprint == nullptr
                           ? nullptr
                           : std::get_if<frontends::JsonValue::Object>(&footprint->param.value);
  if (object == nullptr) return;
  for (const TypeParams& row : kTypeParams) {
    const std::vector<std::string> types = split(row.types, ' ');
    if (std::ranges::find(types, opr().type) == types.end()) continue;
    for (const auto& [name, value] : *object)
      frontends::require_attribute(opr().type, name, row.params);
  }
}

void MegEngineImporter::import_operator() {
  builder_.set_node_name(opr().name);
  try {
    if (!param().has(kOwnParam)) refuse_unknown_params();
    const auto found = handlers().find(opr().type);
    if (param().has(kOwnParam)) {
      tenon_operator();
    } else if (found != handlers().end()) {
      (this->*found->second)();
    } else {
      unsupported("no operators of Tenon make it up");
    }
    if (settings_.computes_shapes) trust_document();
  } catch (const ImportAbandoned&) {
    define_from_document();
  } catch (const Error& error) {
    const bool is_unsupported = error.kind() == ErrorKind::Unsupported;
    problems_.push_back({opr_, is_unsupported ? error.summary() : error.what(), is_unsupported});
    define_from_document();
  }
}

// Continues with the document's statements, so that later operators can be checked.
void MegEngineImporter::define_from_document() {
  for (std::size_t k = 0; k < index_.outputs[opr_].size(); ++k) {
    const std::size_t var = index_.outputs[opr_][k];
    if (value_[var] || is_workspace(profile_.graph_exec.vars[var])) continue;
    const Extents shape = stated_shape(profile_, index_, var);
    if (shape.empty()) continue;
    const DType dtype = stated_dtype(var, shape).value_or(DType::F32);
    try {
      const std::string name = builder_.graph().free_name(value_name());
      value_[var] = ValueId(builder_.input(name, stated_type(var, dtype, shape)).id());
    } catch (const Error&) {
      continue;  // an impossible shape
    }
  }
}

// Replaces contradicted results by the stated shapes: one wrong number is one finding, without
// consequential findings.
void MegEngineImporter::trust_document() {
  for (std::size_t var : index_.outputs[opr_]) {
    if (!value_[var] || !builder_.graph().value(value_[var]).producer) continue;
    const Type& type = builder_.graph().value(value_[var]).type;
    const Extents stated = stated_shape(profile_, index_, var);
    if (stated.empty() || !type.is_tensor() || !all_constant(type.tensor().dims)) continue;
    const Extents inferred = constants(type.tensor().dims);
    if (inferred == stated || inferred.empty()) continue;
    disagreements_.push_back({var, inferred, stated});
    value_[var] = ValueId();
  }
  define_from_document();
}

void MegEngineImporter::set_outputs() {
  Graph& graph = builder_.graph();
  if (outputs_.empty()) {
    // The document does not list the outputs: they are the values without readers.
    for (std::size_t opr : index_.sequence) {
      for (std::size_t var : index_.outputs[opr]) {
        if (value_[var] && index_.readers[var].empty() && !index_.inputs[opr].empty()) {
          outputs_.push_back({profile_.graph_exec.operators[opr].id, value_[var], ""});
        }
      }
    }
  }
  std::stable_sort(outputs_.begin(), outputs_.end(),
                   [](const Output& a, const Output& b) { return a.opr < b.opr; });
  for (const Output& output : outputs_) {
    graph.add_output(output.value);
    const bool is_input = !graph.value(output.value).producer;
    if (!output.name.empty() && !is_input && graph.value(output.value).name != output.name) {
      graph.rename(output.value, graph.free_name(output.name));
    }
  }
}

Inference MegEngineImporter::run() {
  const auto& operators = profile_.graph_exec.operators;
  std::vector<bool> done(operators.size());
  std::vector<std::size_t> stack;
  // Operators that compute target shapes can be skipped if the document states the shapes.
  const auto is_needed = [&](std::size_t opr, std::size_t k) {
    if (settings_.computes_shapes || operators[opr].type == "GetVarShape") return true;
    if (!is_host_input(operators[opr].type, k)) return true;
    return stated_value(profile_.graph_exec.vars[index_.inputs[opr][k]]) == nullptr;
  };
  const auto import_with_needs = [&](std::size_t root) {
    stack.push_back(root);
    while (!stack.empty()) {
      const std::size_t opr = stack.back();
      const std::size_t depth = stack.size();
      if (!done[opr]) {
        for (std::size_t k = index_.inputs[opr].size(); k-- > 0;) {
          const std::size_t maker = index_.producer[index_.inputs[opr][k]];
          if (!done[maker] && is_needed(opr, k)) stack.push_back(maker);
        }
      }
      if (stack.size() > depth) continue;
      stack.pop_back();
      if (done[opr]) continue;
      done[opr] = true;
      opr_ = opr;
      import_operator();
    }
  };
  // Inputs and outputs are in creation order, regardless of their uses.
  std::vector<std::size_t> inputs;
  for (std::size_t opr : index_.sequence) {
    const auto handler = handlers().find(operators[opr].type);
    if (handler != handlers().end() && handler->second == &MegEngineImporter::graph_input)
      inputs.push_back(opr);
  }
  std::sort(inputs.begin(), inputs.end(),
            [&](std::size_t a, std::size_t b) { return operators[a].id < operators[b].id; });
  for (std::size_t opr : inputs) import_with_needs(opr);
  for (std::size_t opr : index_.sequence) import_with_needs(opr);
  if (settings_.computes_shapes) {
    for (std::size_t opr : index_.order) import_with_needs(opr);
  }
  set_outputs();
  return {std::move(builder_.graph()), std::move(value_), std::move(problems_),
          std::move(disagreements_)};
}

Graph import_graph(const MegEngineProfile& profile, const Index& index) {
  Inference inference = MegEngineImporter(profile, index, {}).run();
  for (const Inference::Problem& problem : inference.problems) {
    if (problem.is_unsupported) raise_unsupported(profile, inference);
  }
  for (const Inference::Problem& problem : inference.problems) {
    const Operator& opr = profile.graph_exec.operators[problem.opr];
    throw Error(concat("an operator does not fit its operands: ", problem.message))
        .at(operator_path(opr), " (", opr.type, ")");
  }
  if (inference.graph.outputs().empty()) {
    throw Error("the profile has nothing that leaves the graph").at("$.graph_exec.comp_seq");
  }
  inference.graph.erase_dead();
  return std::move(inference.graph);
}

Inference infer_profile(const MegEngineProfile& profile, const Index& index) {
  return MegEngineImporter(profile, index, {.computes_shapes = true}).run();
}

}  // namespace tenon::documents::megengine
