#include "documents/megengine/write.h"

#include "base/text.h"
#include "documents/megengine/cost.h"
#include "documents/megengine/index.h"
#include "documents/megengine/writer.h"
#include "expr/analysis.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <cmath>

namespace tenon::documents::megengine {
namespace {

constexpr std::string_view kCompNode = "cpu0:0";
// Values are listed for vectors shorter than the maximum rank of a tensor.
constexpr std::size_t kMaxWrittenRank = 7;

const std::vector<std::string>& constant_flags() {
  static const std::vector<std::string> flags = {"NO_MEM_RECLAIM", "ALLOW_EMPTY_SHAPE",
                                                 "PERSISTENT_DEVICE_VALUE",
                                                 "DISALLOW_RT_FORCE_DYNAMIC_MEM_ALLOC"};
  return flags;
}

AttrValue substituted(const AttrValue& value, const DimBindings& bindings) {
  if (const auto* dim = std::get_if<Dim>(&value)) return dim->substitute(bindings);
  if (const auto* dims = std::get_if<Dims>(&value)) return substitute(*dims, bindings);
  if (const auto* type = std::get_if<Type>(&value)) return substitute(*type, bindings);
  return value;
}

// Returns the graph with numbers for symbols: a profile describes one run.
Graph with_numbers(const Graph& graph, const DimBindings& bindings) {
  Graph result(graph.name);
  std::unordered_map<ValueId, ValueId> copy;
  for (ValueId input : graph.inputs()) {
    copy[input] =
        result.add_input(graph.value(input).name, substitute(graph.value(input).type, bindings));
  }
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    Graph::NewNode made;
    made.op = node.op;
    made.name = node.name;
    made.bodies = node.bodies;
    for (const auto& [name, value] : node.attrs) made.attrs.set(name, substituted(value, bindings));
    for (ValueId operand : node.operands)
      made.operands.push_back(operand ? copy.at(operand) : ValueId());
    for (ValueId value : node.results)
      made.results.push_back(value ? graph.value(value).name : "_");
    const NodeId added = result.add_node(std::move(made));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (node.results[k]) copy[node.results[k]] = result.node(added).results[k];
    }
  }
  for (ValueId output : graph.outputs()) result.add_output(copy.at(output));
  return result;
}

}  // namespace

std::uint32_t ProfileWriter::order(std::initializer_list<const char*> names) {
  return profile_.orders.intern(std::vector<std::string>(names.begin(), names.end()));
}

std::optional<Extents> ProfileWriter::shape_of(ValueId value) const {
  const Type& type = graph_.value(value).type;
  if (!type.is_tensor() || !all_constant(type.tensor().dims)) return std::nullopt;
  Extents shape = constants(type.tensor().dims);
  if (shape.empty()) shape = {1};
  return shape;
}
std::size_t ProfileWriter::rank_of(ValueId value) const {
  const Type& type = graph_.value(value).type;
  return type.is_tensor() ? type.tensor().rank() : 0;
}

ProfileWriter::WrittenValue ProfileWriter::made_as(ValueId value) const {
  const Type& type = graph_.value(value).type;
  WrittenValue made;
  made.shape = shape_of(value).value_or(Extents{});
  if (type.is_tensor()) {
    made.dtype = type.tensor().dtype;
    made.format = type.tensor().rank() == 0 ? kScalarFormat : type.tensor().layout.text();
  }
  return made;
}

// A name in the form of a default name belongs to the graph that this one was made from.
std::string ProfileWriter::own_name_of(const Node& node) const {
  if (is_run_ && !node.results.empty() && node.results[0]) {
    const std::string& value = graph_.value(node.results[0]).name;
    if (value.find_first_of("([") == std::string::npos) return value;
  }
  return node.name.find_first_of("([") == std::string::npos ? node.name : "";
}

VarNode& ProfileWriter::add_var(std::size_t opr, const std::string& suffix) {
  Operator& maker = profile_.graph_exec.operators[opr];
  VarNode node;
  node.id = next_++;
  node.name = maker.name + suffix;
  node.comp_node = kCompNode;
  node.prev_dev_ptr = 0;
  node.order =
      order({"flag", "comp_node", "prev_dev_ptr", "force_update_src", "dev_ptr", "mem_plan",
             "mem_readonly_fwd_src", "name", "static_infer_tags", "id", "node_type"});
  node.static_infer_tags.order = order({"VALUE", "SHAPE"});
  node.static_infer_tags.shape = tag({}, false, "NO_DESC");
  node.static_infer_tags.value = tag({}, false, "NO_DESC");
  maker.output.push_back(node.id);
  var_position_[node.id] = profile_.graph_exec.vars.size();
  made_[node.id] = {};
  return profile_.graph_exec.vars.emplace_back(std::move(node));
}

// The inference type is the latest of the sources' types.
InferTag ProfileWriter::tag(std::vector<std::pair<std::string, ItemId>> deps, bool has_rule,
                            std::string_view without_deps) {
  InferTag result;
  result.order = order({"deps", "inferred_result", "infer_type", "node_type"});
  result.infer_type = without_deps;
  if (!has_rule || deps.empty()) return result;
  bool is_missing = false, is_constant = true;
  for (auto& [kind, id] : deps) {
    const StaticInferTags& tags = var(id).static_infer_tags;
    const std::string& source = kind == "SHAPE" ? tags.shape.infer_type : tags.value.infer_type;
    is_missing = is_missing || source == "NO_DESC" || source == "MISSING_INP";
    is_constant = is_constant && source == "CONST";
    InferTag::Dep dep;
    dep.order = order({"dep_type", "var"});
    dep.var = id;
    dep.dep_type = std::move(kind);
    result.deps.push_back(std::move(dep));
  }
  result.infer_type = is_missing ? "MISSING_INP" : is_constant ? "CONST" : "RT_STATIC";
  return result;
}

void ProfileWriter::set_made(VarNode& node, const WrittenValue& made) {
  made_[node.id] = made;
  if (made.shape.empty()) return;
  node.static_infer_tags.shape.inferred_result =
      std::vector<double>(made.shape.begin(), made.shape.end());
}

// Plans a chunk for the var, or places it in the chunk of the var that it views.
void ProfileWriter::place(VarNode& node, const WrittenValue& made, const VarNode* shows) {
  if (made.shape.empty() || !made.dtype) return;
  const std::string dtype = dtype_name(*made.dtype);
  const auto bits = dtype_bits(dtype);
  if (!bits) return;
  MemPlan plan;
  plan.order = order({"offset_byte", "layout", "mem_chunk_id"});
  plan.layout.order = order({"dtype", "stride", "shape"});
  plan.layout.dtype = dtype;
  plan.layout.shape = made.shape;
  plan.layout.stride = contiguous_strides(made.shape);
  if (!made.format.empty()) {
    plan.layout.order = order({"dtype", "stride", "shape", "format"});
    plan.layout.other.emplace_back("format", frontends::JsonValue{});
    plan.layout.other.back().second.value = made.format;
  }
  if (shows != nullptr && shows->mem_plan) {
    plan.mem_chunk_id = shows->mem_plan->mem_chunk_id;
    node.mem_readonly_fwd_src = shows->id;
  } else {
    MemChunk chunk;
    chunk.order = order({"dev_ptr", "owner_var", "size", "id", "node_type"});
    chunk.key = chunk.id = concat("chk", node.id);
    chunk.owner_var = node.id;
    chunk.size = saturating_sum(saturating_product(count_of(made.shape), *bits), 7) / 8;
    plan.mem_chunk_id = chunk.key;
    profile_.graph_exec.mem_chunks.push_back(std::move(chunk));
  }
  node.mem_plan = std::move(plan);
}

std::size_t ProfileWriter::add_operator(const Plan& plan, const std::string& own_name,
                                        bool is_executed) {
  Operator opr;
  opr.order =
      order({"waiting_spec", "output", "input", "type", "name", "id", "extra", "node_type"});
  opr.id = next_++;
  opr.type = plan.type;
  opr.input = plan.inputs;
  std::vector<const std::string*> names;
  for (ItemId input : plan.inputs) names.push_back(&var(input).name);
  if (const auto count = named_inputs(plan.type); count && names.size() > *count)
    names.resize(*count);
  const frontends::JsonValue param(plan.param);
  const std::string start =
      plan.start.empty() ? default_name(opr, Param(&param)).value_or("") : plan.start;
  opr.name = own_name.empty() ? full_name(start, names, opr.id) : own_name;
  opr.extra.order = order({});
  if (is_executed) {
    opr.waiting_spec.emplace();
    opr.extra.order = order({"dfs_step_num", "input_update_time", "priority"});
    opr.extra.priority = 0;
    profile_.graph_exec.comp_seq.push_back(opr.id);
  }
  profile_.graph_exec.operators.push_back(std::move(opr));
  return profile_.graph_exec.operators.size() - 1;
}

void ProfileWriter::add_footprint(std::size_t opr, const Plan& plan) {
  const Operator& node = profile_.graph_exec.operators[opr];
  OprFootprint footprint;
  footprint.order = order({"param", "out_shapes", "in_shapes", "memory", "computation"});
  footprint.opr = node.id;
  if (plan.param_list) {
    footprint.param.value = *plan.param_list;
  } else {
    footprint.param.value = plan.param;
  }
  const auto bytes = [&](ItemId id) {
    const WrittenValue& made = made_.at(id);
    const int bits = made.dtype ? dtype_bits(dtype_name(*made.dtype)).value_or(32) : 32;
    return saturating_sum(saturating_product(count_of(made.shape), bits), 7) / 8;
  };
  const auto is_host_only = [&](std::size_t k) { return is_host_input(node.type, k); };
  for (std::size_t k = 0; k < node.input.size(); ++k) {
    footprint.in_shapes.push_back(is_host_only(k) && k > 0 ? Extents{}
                                                           : made_.at(node.input[k]).shape);
    if (!is_host_only(k)) footprint.memory = saturating_sum(footprint.memory, bytes(node.input[k]));
  }
  for (ItemId id : node.output) {
    if (is_workspace(var(id))) continue;
    footprint.out_shapes.push_back(made_.at(id).shape);
    footprint.memory = saturating_sum(footprint.memory, bytes(id));
  }
  const std::int64_t computation = plan.computation.value_or(computation_of(
      node.type, Param(&footprint.param), footprint.in_shapes, footprint.out_shapes));
  if (computation > 0) footprint.computation = computation;
  profile_.profiler.opr_footprint.push_back(std::move(footprint));
}

// MegEngine's inference rules for shapes and values of known types; for other types the shape only.
void ProfileWriter::tag_results(std::size_t opr, const Plan& plan) {
  using Deps = std::vector<std::pair<std::string, ItemId>>;
  const std::vector<ItemId> inputs = profile_.graph_exec.operators[opr].input;
  const std::vector<ItemId> outputs = profile_.graph_exec.operators[opr].output;
  Deps shapes, values;
  for (ItemId input : inputs) {
    shapes.emplace_back("SHAPE", input);
    values.emplace_back("VALUE", input);
  }
  if (plan.type == "Reshape" && shapes.size() > 1) shapes[1].first = "VALUE";
  Deps workspace = shapes;
  if (plan.type == "GetVarShape") values = shapes;
  const bool infers_value = plan.type == "Elemwise" || plan.type == "Concat" ||
                            plan.type == "Reshape" || plan.type == "GetVarShape" ||
                            plan.type == "TypeCvt";
  for (ItemId output : outputs) {
    VarNode& node = var(output);
    const auto shape = node.static_infer_tags.shape.inferred_result;
    const auto value = node.static_infer_tags.value.inferred_result;
    const bool is_volatile = is_workspace(node);
    node.static_infer_tags.shape =
        tag(is_volatile ? workspace : shapes, true, inputs.empty() ? "RT_STATIC" : "NO_DESC");
    node.static_infer_tags.shape.inferred_result = shape;
    if (plan.type == "Reduce" && !is_volatile) {
      node.static_infer_tags.value =
          tag({{"VALUE", inputs[0]}, {"SHAPE", output}}, true, "NO_DESC");
    } else {
      node.static_infer_tags.value = tag(values, infers_value && !is_volatile, "NO_DESC");
    }
    node.static_infer_tags.value.inferred_result = value;
    if (!is_volatile) workspace.emplace_back("SHAPE", output);
  }
}

void ProfileWriter::add_input(ValueId value) {
  const Type& type = graph_.value(value).type;
  if (!type.is_tensor()) {
    throw Error("a profile has tensors only", ErrorKind::Unsupported)
        .at("graph input '", graph_.value(value).name, "'")
        .got(type);
  }
  Plan plan;
  plan.type = "Host2DeviceCopy";
  const std::size_t opr = add_operator(plan, graph_.value(value).name, true);
  WrittenValue made = made_as(value);
  if (symbolic_ != nullptr) {
    const auto position = std::find(graph_.inputs().begin(), graph_.inputs().end(), value);
    const ValueId input =
        symbolic_->inputs()[static_cast<std::size_t>(position - graph_.inputs().begin())];
    Graph alone;
    alone.add_input("x", symbolic_->value(input).type);
    if (!all_constant(symbolic_->value(input).type.tensor().dims)) made.format = one_line(alone);
  }
  VarNode& node = add_var(opr, "");
  node.flag = constant_flags();
  node.static_infer_tags.shape = tag({}, true, "RT_STATIC");
  set_made(node, made);
  place(node, made, nullptr);
  var_of_[value] = node.id;
  add_footprint(opr, plan);
}

// Elements above the size limit are omitted.
VarNode& ProfileWriter::add_constant_var(std::size_t opr, const WrittenValue& made,
                                         std::optional<std::vector<double>> elements) {
  VarNode& node = add_var(opr, "");
  node.flag = constant_flags();
  node.static_infer_tags.shape = tag({}, true, "CONST");
  node.static_infer_tags.value = tag({}, true, "CONST");
  set_made(node, made);
  if (elements) {
    node.static_infer_tags.value.inferred_result = std::move(*elements);
  } else {
    node.static_infer_tags.value.inferred_result = "Large Array";
  }
  return node;
}

ItemId ProfileWriter::constant_as(ValueId value, const Extents& shape) {
  const auto [found, is_new] = constants_.try_emplace({value.index(), shape}, ItemId{});
  if (!is_new) return found->second;
  const Constant& constant = *graph_.constant_of(value);
  const bool is_number = constant.dtype() != DType::String && !is_complex(constant.dtype());
  std::optional<std::vector<double>> elements;
  if (shape.size() == 1 && static_cast<std::size_t>(shape[0]) < kMaxWrittenRank && is_number) {
    elements = constant.materialise().reals();
  }
  Plan plan;
  plan.type = "ImmutableTensor";
  const bool is_single = elements && elements->size() == 1;
  plan.start = constant_name(shape, is_single ? std::optional(elements->front()) : std::nullopt);
  const std::size_t opr = add_operator(plan, "", !is_run_);
  WrittenValue made = made_as(value);
  made.shape = shape;
  VarNode& node = add_constant_var(opr, made, std::move(elements));
  place(node, made, nullptr);
  found->second = node.id;
  if (!is_run_) add_footprint(opr, plan);
  return found->second;
}

ItemId ProfileWriter::host_constant(const Extents& values) {
  Plan plan;
  plan.type = "ImmutableTensor";
  const Extents shape = {static_cast<std::int64_t>(values.size())};
  plan.start = constant_name(
      shape, values.size() == 1 ? std::optional(static_cast<double>(values[0])) : std::nullopt);
  std::optional<std::vector<double>> elements;
  if (values.size() < kMaxWrittenRank) elements.emplace(values.begin(), values.end());
  const std::size_t opr = add_operator(plan, "", false);
  return add_constant_var(opr, {shape, std::nullopt, {}}, std::move(elements)).id;
}

ItemId ProfileWriter::var_of(ValueId value) {
  if (const auto found = var_of_.find(value); found != var_of_.end()) return found->second;
  return constant_as(value, shape_of(value).value_or(Extents{}));
}

// Returns whether MegEngine counts the operator's operations.
bool ProfileWriter::is_counted(const Plan& plan, const Node& node) const {
  std::vector<Extents> in, out = {made_as(node.results[0]).shape};
  for (const ItemId input : plan.inputs) in.push_back(made_.at(input).shape);
  OprFootprint footprint;
  footprint.param.value = plan.param;
  return !plan.param_list && computation_of(plan.type, Param(&footprint.param), in, out) > 0;
}

std::optional<ItemId> ProfileWriter::find_var(ValueId value) const {
  if (const auto found = var_of_.find(value); found != var_of_.end()) return found->second;
  const auto made = constants_.lower_bound({value.index(), {}});
  if (made == constants_.end() || made->first.first != value.index()) return std::nullopt;
  return made->second;
}

// The text comes from the symbolic graph, which has the same nodes in the same order.
NativeNode ProfileWriter::record_of(NodeId id) {
  NativeNode own = native_node(graph_, id);
  if (symbolic_ == nullptr) return own;
  own.text = native_node(*symbolic_, next_symbolic_).text;
  return own;
}

void ProfileWriter::add_node(NodeId id) {
  const Node& node = graph_.node(id);
  if (!node.results.empty() && node.results[0] && is_constant(node.results[0]))
    return;  // added with the first reader
  std::optional<Plan> translated =
      native_.contains(id) || symbolic_ != nullptr ? std::nullopt : plan_of(id);
  if (is_run_ && translated && !is_counted(*translated, node)) translated.reset();
  const bool is_tenon = !translated;
  const Plan plan = translated ? std::move(*translated) : tenon_plan(record_of(id), id);
  const std::size_t opr = add_operator(plan, own_name_of(node), true);
  for (const std::string& name : plan.before) {
    VarNode& further = add_var(opr, concat(":", name));
    further.flag = {"ALLOW_EMPTY_SHAPE"};
    set_made(further, {{0}, made_as(node.results[0]).dtype, {}});
    place(further, made_.at(further.id), nullptr);
  }
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    const ValueId result = node.results[k];
    if (!result) continue;
    const WrittenValue made = made_as(result);
    VarNode& var_node = add_var(
        opr,
        k == 0
            ? (plan.before.empty() ? "" : ":y")
            : concat(":", node.op->results.empty()
                              ? "out"
                              : node.op->results[std::min(k, node.op->results.size() - 1)].name));
    if (made.shape.empty()) var_node.flag.emplace_back("RT_FORCE_DYNAMIC_MEM_ALLOC");
    if (!plan.has_workspace) var_node.flag.emplace_back("ALLOW_EMPTY_SHAPE");
    set_made(var_node, made);
    var_of_[result] = var_node.id;
    place(var_node, made, plan.is_view ? &var(plan.inputs[0]) : nullptr);
    // Elements of known shapes.
    const Dims* known = graph_.known_elements(result);
    if (plan.type == "GetVarShape" && known != nullptr && all_constant(*known) &&
        known->size() < kMaxWrittenRank) {
      const Extents elements = constants(*known);
      var_node.static_infer_tags.value.inferred_result =
          std::vector<double>(elements.begin(), elements.end());
    }
    if (!is_tenon) break;  // MegEngine lacks further results
  }
  if (plan.has_workspace) {
    VarNode& workspace = add_var(opr, ":workspace");
    workspace.flag = {"VOLATILE_CONTENT", "ALLOW_EMPTY_SHAPE"};
    set_made(workspace, {{0}, std::nullopt, {}});
  }
  tag_results(opr, plan);
  add_footprint(opr, plan);
}

void ProfileWriter::add_output(ValueId value, std::size_t) {
  if (is_run_) {
    Plan plan;
    plan.type = plan.start = "Copy";
    plan.inputs = {var_of(value)};
    plan.computation = count_of(made_.at(plan.inputs[0]).shape);
    const std::size_t opr = add_operator(plan, "", true);
    const WrittenValue made = made_as(value);
    VarNode& node = add_var(opr, "");
    set_made(node, made);
    place(node, made, nullptr);
    tag_results(opr, plan);
    add_footprint(opr, plan);
    return;
  }
  Plan plan;
  plan.type = "OutputCallback";
  plan.inputs = {var_of(value)};
  const std::string& name = graph_.value(value).name;
  const bool is_own = name.find_first_of("([") == std::string::npos;
  const std::size_t opr = add_operator(plan, is_own ? name : "", true);
  VarNode& node = add_var(opr, "");
  node.flag = {"NO_SYS_MEM_ALLOC", "ALLOW_EMPTY_SHAPE"};
  add_footprint(opr, plan);
}

void ProfileWriter::set_order() {
  GraphExec& exec = profile_.graph_exec;
  const Index index = index_of(profile_, "graph");
  const std::vector<ReadyTask> tasks = tasks_of(profile_, index);
  const ReadyOrder sequence = ready_order(tasks);
  std::vector<bool> is_needed(tasks.size());
  for (const ReadyTask& task : tasks) {
    for (std::uint32_t need : task.needs) is_needed[need] = true;
  }
  std::vector<std::uint32_t> roots;
  for (std::uint32_t k = 0; k < tasks.size(); ++k) {
    if (tasks[k].takes_step && !is_needed[k]) roots.push_back(k);
  }
  const std::vector<std::int64_t> numbers = post_order(tasks, roots);
  exec.comp_seq.clear();
  for (std::uint32_t task : sequence.sequence) exec.comp_seq.push_back(exec.operators[task].id);
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    if (!tasks[k].takes_step) continue;
    exec.operators[k].extra.input_update_time = sequence.ready_at[k];
    exec.operators[k].extra.dfs_step_num = numbers[k];
  }
}

MegEngineProfile ProfileWriter::run() {
  profile_.order = order({"profiler", "graph_exec"});
  profile_.profiler.order = order({"opr_internal_pf", "host", "opr_footprint", "device"});
  profile_.profiler.opr_internal_pf.value = frontends::JsonValue::Object{};
  profile_.graph_exec.order = order({"comp_seq", "mem_chunk", "var", "operator"});
  for (ValueId input : graph_.inputs()) add_input(input);
  if (symbolic_ != nullptr) next_symbolic_ = symbolic_->first();
  for (NodeId id : graph_.nodes_in_order()) {
    add_node(id);
    if (symbolic_ != nullptr) next_symbolic_ = symbolic_->next(next_symbolic_);
  }
  for (std::size_t k = 0; k < graph_.outputs().size(); ++k) add_output(graph_.outputs()[k], k);
  set_order();
  return std::move(profile_);
}

Graph with_least_symbols(const Graph& graph, DimBindings bindings) {
  SymbolRanges symbols;
  for (ValueId input : graph.inputs()) {
    const Type& type = graph.value(input).type;
    if (!type.is_tensor()) continue;
    for (const Dim& dim : type.tensor().dims) dim.collect_symbols(symbols);
  }
  if (symbols.empty()) return graph;
  for (const auto& [name, range] : symbols)
    bindings.emplace(name, Dim(std::max<std::int64_t>(range.lo, 1)));
  return with_numbers(graph, bindings);
}

MegEngineProfile write_graph(const Graph& graph, const NativeNodes& own) {
  const bool has_symbols =
      std::any_of(graph.inputs().begin(), graph.inputs().end(), [&](ValueId input) {
        const Type& type = graph.value(input).type;
        return type.is_tensor() && !all_constant(type.tensor().dims);
      });
  if (!has_symbols) return ProfileWriter(graph, false, own).run();
  try {
    const Graph bound = with_least_symbols(graph, {});
    return ProfileWriter(bound, false, own, &graph).run();
  } catch (const Error& error) {
    throw Error("a profile is of one run, and there is none with the least extents",
                ErrorKind::Unsupported)
        .got(error.summary())
        .hint("give numbers for symbolic extents: zoo:NAME?batch=1");
  }
}

}  // namespace tenon::documents::megengine
