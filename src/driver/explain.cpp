#include "driver/explain.h"

#include "base/error.h"
#include "base/text.h"
#include "expr/fused_groups.h"
#include "models/extract_node.h"

#include <algorithm>

namespace tenon::driver {
namespace {

std::string first_name(const Graph& graph, NodeId id) {
  for (ValueId result : graph.node(id).results) {
    if (result) return graph.value(result).name;
  }
  return graph.node(id).name;
}

// Location of a value: in the graph itself, in a body of one of its nodes, or not found.
struct ValueLocation {
  const Graph* graph = nullptr;
  NodeId node;    // producer of the value; invalid for an input
  NodeId holder;  // node of the outermost graph whose body contains it
  bool is_found() const { return graph != nullptr; }
};

bool find_in(const Graph& graph, const std::string& name, ValueLocation& place) {
  if (const ValueId value = graph.find(name)) {
    place.graph = &graph;
    place.node = graph.value(value).producer;
    return true;
  }
  for (NodeId id : graph.nodes_in_order()) {
    for (const Graph& body : graph.node(id).bodies) {
      if (!find_in(body, name, place)) continue;
      place.holder = id;  // the outermost one wins
      return true;
    }
  }
  return false;
}

ValueLocation place_of(const Graph& graph, const std::string& name) {
  ValueLocation place;
  find_in(graph, name, place);
  return place;
}

// Returns the first result of the node with that source name, in the graph or in a body; empty if
// not found.
std::string result_of(const Graph& graph, const std::string& node_name) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).name == node_name && graph.node(id).bodies.empty())
      return first_name(graph, id);
    for (const Graph& body : graph.node(id).bodies) {
      std::string inner = result_of(body, node_name);
      if (!inner.empty()) return inner;
    }
  }
  return "";
}

void collect_names(const Graph& graph, std::vector<std::string>& names) {
  for (ValueId input : graph.inputs()) names.push_back(graph.value(input).name);
  for (NodeId id : graph.nodes_in_order()) {
    for (ValueId result : graph.node(id).results) {
      if (result) names.push_back(graph.value(result).name);
    }
    if (!graph.node(id).name.empty()) names.push_back(graph.node(id).name);
    for (const Graph& body : graph.node(id).bodies) collect_names(body, names);
  }
}

// Returns the first result of the named node; empty if not found.
std::string resolve(const Graph& graph, const std::string& name) {
  const ValueLocation place = place_of(graph, name);
  if (place.is_found()) return place.node ? first_name(*place.graph, place.node) : name;
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).name == name) return first_name(graph, id);
    for (const Graph& body : graph.node(id).bodies) {
      const std::string inner = resolve(body, name);
      if (!inner.empty()) return inner;
    }
  }
  return "";
}

std::string op_at(const ValueLocation& place) {
  return place.node ? std::string(place.graph->op_name(place.node)) : "input";
}

std::string described(const Graph& graph, const ValueLocation& place) {
  if (!place.is_found()) return "gone";
  if (!place.holder) return op_at(place);
  return concat(op_at(place), " in ", graph.op_name(place.holder), " '",
                first_name(graph, place.holder), "'");
}

// Returns the kernel candidates for a node of the outermost graph.
std::vector<Explanation::Kernel> kernels_of(const Graph& graph, NodeId node,
                                            const codegen::CompileOptions& compile) {
  if (graph.constant_of(graph.node(node).results.front()) != nullptr) return {};
  std::vector<Explanation::Kernel> kernels;
  for (const codegen::Decision& decision :
       codegen::decide(models::extract_node(graph, node), compile)) {
    kernels.push_back(describe_decision(decision));
  }
  return kernels;
}

}  // namespace

Explanation::Kernel describe_decision(const codegen::Decision& decision) {
  const auto& candidates = decision.candidates;
  const std::vector<codegen::Version>& versions = decision.selection.versions;
  const auto version_of = [&](std::size_t k) {
    return std::find_if(versions.begin(), versions.end(),
                        [&](const codegen::Version& version) { return version.candidate == k; });
  };
  std::vector<std::size_t> order(candidates.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  const auto rank = [&](std::size_t k) {
    return std::make_tuple(version_of(k) == versions.end(), !candidates[k].verdict.accepts,
                           candidates[k].verdict.cost);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  Explanation::Kernel kernel{decision.name, {}};
  for (const std::size_t k : order) {
    const auto& [name, verdict] = candidates[k];
    const auto version = version_of(k);
    const std::string cost =
        verdict.accepts && decision.has_estimates
            ? concat("about ", static_cast<std::int64_t>(verdict.cost), " cycles")
            : verdict.reason;
    std::string text = version != versions.end()
                           ? concat("chosen: ", decision.selection.why, "; ", cost)
                       : verdict.accepts ? concat("accepts: ", cost)
                                         : concat("refuses: ", cost);
    if (version != versions.end() && !version->symbol.empty()) {
      text = concat("for ", version->symbol, " from ", version->lo, " to ", version->hi, " ", text);
    }
    kernel.candidates.push_back({name, std::move(text)});
  }
  return kernel;
}

Explanation explain(Graph graph, const std::string& name, PipelineOptions options,
                    const codegen::CompileOptions& compile) {
  Explanation result;
  std::vector<std::string> known;
  collect_names(graph, known);
  result.name = resolve(graph, name);
  std::string was = "not created yet";
  if (!result.name.empty()) {
    const ValueLocation place = place_of(graph, result.name);
    result.op = op_at(place);
    result.type = to_string(place.graph->value(place.graph->find(result.name)).type);
    was = described(graph, place);
  }
  const bool is_known = !result.name.empty();
  if (!is_known) result.name = name;  // a pass may create it

  passes::Remarks remarks;
  options.pass_options.remarks = &remarks;
  std::size_t said = 0;
  bool is_ever_found = is_known;
  // Current name of its result: a value that replaces another one takes its name.
  std::string value = result.name;
  options.on_pass = [&](const PassReport& report, const Graph& after) {
    const std::vector<passes::Remarks::Entry>& entries = remarks.about(value);
    for (; said < entries.size(); ++said) result.steps.push_back({report.pass, entries[said].text});
    ValueLocation place = place_of(after, value);
    is_ever_found |= place.is_found();
    if (const std::string renamed = place.is_found() ? "" : result_of(after, result.name);
        !renamed.empty()) {
      result.steps.push_back({report.pass, concat("its result replaces '", renamed, "'")});
      value = renamed;
      said = remarks.about(value).size();  // earlier remarks concern the replaced value
      place = place_of(after, value);
    }
    const std::string is = is_ever_found ? described(after, place) : was;
    if (is != was) {
      result.steps.push_back({report.pass, is == "gone"
                                               ? "removed: unused, or replaced by another node"
                                               : concat("now ", is, "; before, ", was)});
    }
    was = is;
  };
  graph = run_pipeline(std::move(graph), options);

  const ValueLocation place = place_of(graph, value);
  if (!is_ever_found && result.steps.empty()) {
    throw Error(concat("the model has no node or value '", name, "'"), ErrorKind::Usage)
        .hint(suggest_name(name, known));
  }
  if (!place.is_found()) return result;
  result.end_op = op_at(place);
  result.end_type = to_string(place.graph->value(place.graph->find(value)).type);
  if (place.graph == &graph && place.node) result.kernels = kernels_of(graph, place.node, compile);
  if (place.holder && is_fused_group(graph, place.holder)) {
    result.kernels = kernels_of(graph, place.holder, compile);
    result.group = first_name(graph, place.holder);
    const Graph& body = graph.node(place.holder).bodies.front();
    for (NodeId id : body.nodes_in_order()) {
      result.members.push_back(concat(first_name(body, id), " (", body.op_name(id), ")"));
    }
  }
  return result;
}

}  // namespace tenon::driver
