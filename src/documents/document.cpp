#include "documents/document.h"

#include "documents/same_network.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <vector>

namespace tenon::documents {

void Document::refuse_style(std::string_view format, std::string_view style) {
  if (style.empty()) return;
  throw Error(concat("the format '", format, "' has one style only"), ErrorKind::Usage)
      .got("style '", style, "'");
}

const DocumentFormat* find_document_format(std::string_view name) {
  const auto formats = document_formats();
  const auto found = std::ranges::find(formats, name, &DocumentFormat::name);
  if (found != formats.end()) return &*found;
  if (find_known_format(name) == nullptr) return nullptr;
  throw Error(concat("this build has no documents, so it does not know the format '", name, "'"),
              ErrorKind::Usage)
      .hint("configure it with -DTENON_DOCUMENTS=ON");
}

const DocumentFormat* recognised_format(std::string_view head) {
  for (const KnownFormat& format : known_formats()) {
    if (format.recognises(head)) return find_document_format(format.name);
  }
  return nullptr;
}

namespace {

// Result of a round trip: written, read again, checked and compared.
struct Return {
  std::string problem;        // empty if the round trip is exact
  std::vector<NodeId> nodes;  // nodes that changed
  bool has_other_inputs = false;
  std::vector<std::pair<std::string, Constant>> values;
};

Return read_again(const DocumentFormat& format, const Graph& graph, const Document& document) {
  Return result;
  try {
    const std::unique_ptr<Document> again = format.read(document.text(""), format.name);
    const Graph came_back = again->graph();
    NetworkDifference found = difference(graph, came_back);
    result.problem = std::move(found.first);
    result.nodes = std::move(found.nodes);
    result.has_other_inputs = !found.are_inputs_same;
    for (const auto& [here, there] : found.constants)
      result.values.emplace_back(came_back.value(there).name, *graph.constant_of(here));
    if (!result.problem.empty()) return result;
    const Findings findings = again->check();
    if (!findings.mismatches().empty()) {
      const Findings::Mismatch& first = findings.mismatches().front();
      result.problem = concat("checking it finds ", first.kind, " at ", first.place, ": says ",
                              first.says, ", should be ", first.should_be);
    }
  } catch (const Error& error) {
    result.problem = error.what();
  }
  return result;
}

}  // namespace

WrittenDocument DocumentFormat::write(const Graph& whole) const {
  constexpr int most_repairs = 6;
  Graph graph = whole;
  graph.erase_dead();  // documents contain only nodes that reach an output
  NativeNodes own;
  for (int repair = 0;; ++repair) {
    std::unique_ptr<Document> document = put_down(graph, own);
    Return result = read_again(*this, graph, *document);
    if (result.problem.empty()) return {std::move(document), std::move(result.values)};
    const std::size_t before = own.nodes.size();
    if (repair < most_repairs) own.nodes.insert(result.nodes.begin(), result.nodes.end());
    if (own.nodes.size() == before && repair > 0) {
      for (const NodeId id : graph.nodes_in_order()) own.nodes.insert(id);
    }
    const bool states_types = result.has_other_inputs || result.nodes.empty();
    const bool is_new = states_types && !std::exchange(own.are_types_stated, true);
    if (own.nodes.size() > before || is_new) continue;
    throw Error(concat("the graph cannot be written as ", name, ": it would not come back"),
                ErrorKind::Unsupported)
        .got(result.problem);
  }
}

Graph values_graph(const WrittenDocument& written) {
  Graph graph("values");
  for (const auto& [name, value] : written.values) {
    if (!graph.find(name)) graph.add_constant(find_op("constant"), value, name);
  }
  return graph;
}

void set_values(Graph& graph, const Graph& values) {
  for (const NodeId id : values.nodes_in_order()) {
    const Node& node = values.node(id);
    const Constant* given = node.results.empty() ? nullptr : values.constant_of(node.results[0]);
    if (given == nullptr) throw Error("values beside a document are constants and nothing else");
    const std::string& name = values.value(node.results[0]).name;
    const ValueId value = graph.find(name);
    const Constant* old = value ? graph.constant_of(value) : nullptr;
    if (old == nullptr || old->dtype() != given->dtype() || old->shape() != given->shape()) {
      throw Error(concat("the values beside the document have '", name, "', which it has not"))
          .expected(old == nullptr ? std::string("a constant of the document")
                                   : to_string(old->type()))
          .got(to_string(given->type()));
    }
    graph.set_attribute(graph.value(value).producer, "value", *given);
  }
}

}  // namespace tenon::documents
