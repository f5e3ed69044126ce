#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/show_program.h"
#include "cli/table.h"
#include "frontends/onnx/describe.h"
#include "ir/text.h"
#include "models/model_source.h"
#include "models/summary.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ShowOptions {
  std::string model;
  bool every_node = false, as_graph = false;
};

std::string count_text(const Dim& dim) {
  return dim.is_constant() ? format_count(static_cast<double>(dim.constant())) : to_string(dim);
}
std::string bytes_text(const Dim& dim) {
  return dim.is_constant() ? format_bytes(static_cast<std::uint64_t>(dim.constant()))
                           : to_string(dim) + " B";
}
Json number(const Dim& dim) {
  return dim.is_constant() ? Json(dim.constant()) : Json(to_string(dim));
}

Json to_json(const Footprint& footprint) {
  return {{"flops", number(footprint.flops)},
          {"bytes_read", number(footprint.bytes_read)},
          {"bytes_written", number(footprint.bytes_written)}};
}

Json node_json(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  Json results = Json::array(), operands = Json::array();
  for (ValueId result : node.results) {
    if (!result) continue;
    results.push_back(
        {{"name", graph.value(result).name}, {"type", to_string(graph.value(result).type)}});
  }
  for (ValueId operand : node.operands)
    operands.push_back(operand ? Json(graph.value(operand).name) : Json());
  Json attrs = Json::object();
  for (const auto& [name, value] : node.attrs) attrs[name] = print(value);
  Json json = {{"op", node.op->name},  {"name", node.name},
               {"operands", operands}, {"results", results},
               {"attributes", attrs},  {"fusion", to_string(fusion_kind(graph, id))}};
  json.update(to_json(footprint_of(graph, id)));
  return json;
}

void print_json(const Graph& graph, const models::GraphSummary& summary, bool every_node) {
  const auto ports = [](const std::vector<models::GraphSummary::Port>& list) {
    Json json = Json::array();
    for (const auto& port : list)
      json.push_back({{"name", port.name}, {"type", to_string(port.type)}});
    return json;
  };
  Json json = {
      {"name", graph.name}, {"inputs", ports(summary.inputs)}, {"outputs", ports(summary.outputs)}};
  json["symbols"] = Json::object();
  for (const auto& [name, range] : summary.symbols) json["symbols"][name] = {range.lo, range.hi};
  json["nodes"] = summary.node_count;
  json["constants"] = summary.constant_count;
  json["parameters"] = summary.parameter_count;
  json["constant_bytes"] = summary.constant_bytes;
  json.update(to_json(summary.total));
  json["ops"] = Json::array();
  for (const auto& count : summary.ops) {
    Json op = {{"op", count.op}, {"nodes", count.nodes}};
    op.update(to_json(count.footprint));
    json["ops"].push_back(std::move(op));
  }
  json["metadata"] = graph.metadata;
  if (every_node) {
    json["node_list"] = Json::array();
    for (NodeId id : graph.nodes_in_order()) {
      if (graph.node(id).results.empty() || !graph.constant_of(graph.node(id).results[0])) {
        json["node_list"].push_back(node_json(graph, id));
      }
    }
  }
  out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void print_nodes(const Graph& graph) {
  Table table({"node", "op", "result", ">flops", ">read", ">written", "kind"});
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    if (!node.results.empty() && graph.constant_of(node.results[0])) continue;
    const Footprint footprint = footprint_of(graph, id);
    std::string name, type;
    for (ValueId result : node.results) {
      if (!result) continue;
      name += (name.empty() ? "" : ", ") + graph.value(result).name;
      type += (type.empty() ? "" : ", ") + to_string(graph.value(result).type);
    }
    table.add({name, node.op->name, type, count_text(footprint.flops),
               bytes_text(footprint.bytes_read), bytes_text(footprint.bytes_written),
               to_string(fusion_kind(graph, id))});
  }
  table.print(out());
}

void print_table(const Graph& graph, const models::GraphSummary& summary, bool every_node) {
  out() << (graph.name.empty() ? "model" : graph.name) << ": " << summary.node_count << " nodes, "
        << format_count(static_cast<double>(summary.parameter_count)) << " parameters ("
        << format_bytes(static_cast<std::uint64_t>(summary.constant_bytes)) << " of constants), "
        << count_text(summary.total.flops) << " flops, "
        << bytes_text(models::total_of(summary.total.bytes_read, summary.total.bytes_written))
        << " moved\n\n";
  Table ports({"", "name", "type"});
  for (const auto& port : summary.inputs) ports.add({"input", port.name, to_string(port.type)});
  for (const auto& port : summary.outputs) ports.add({"output", port.name, to_string(port.type)});
  for (const auto& [name, range] : summary.symbols) {
    const bool is_open = range.hi == kMaxExtent;
    ports.add({"symbol", name, concat(range.lo, is_open ? " or more" : concat(" to ", range.hi))});
  }
  for (const auto& [name, value] : graph.metadata) ports.add({"metadata", name, value});
  ports.print(out());
  out() << "\n";
  if (every_node) {
    print_nodes(graph);
    return;
  }
  Table ops({"op", ">nodes", ">flops", ">read", ">written"});
  for (const auto& count : summary.ops) {
    ops.add({count.op, std::to_string(count.nodes), count_text(count.footprint.flops),
             bytes_text(count.footprint.bytes_read), bytes_text(count.footprint.bytes_written)});
  }
  ops.print(out());
}

// Maps "kept for backward" to kept_for_backward; columns without a title describe the row.
std::string field_name(std::string_view column, const Json& fields) {
  std::string name;
  for (const char c : column) {
    const bool is_letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_letter) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty()) name = fields.contains("what") ? "note" : "what";
  return name;
}

Json cell_json(const Page::Cell& cell) {
  std::optional<double> number = cell.number;
  std::string digits = cell.text;
  std::erase(digits, ',');
  const bool is_plain = !digits.empty() && digits.size() < 16 && digits.front() != '.' &&
                        digits.find_first_not_of("0123456789.") == std::string::npos &&
                        std::count(digits.begin(), digits.end(), '.') < 2;
  if (!number && is_plain) number = std::stod(digits);
  if (!number) return cell.text;
  if (*number == std::floor(*number) && std::fabs(*number) < 9e15)
    return static_cast<std::int64_t>(*number);
  return *number;
}

void print_json(const Page& page) {
  Json json = {{"title", page.title}, {"sections", Json::array()}};
  for (const Page::Section& section : page.sections) {
    Json rows = Json::array();
    for (const auto& row : section.rows) {
      Json fields = Json::object();
      for (std::size_t k = 0; k < row.size() && k < section.columns.size(); ++k)
        fields[field_name(section.columns[k], fields)] = cell_json(row[k]);
      rows.push_back(std::move(fields));
    }
    json["sections"].push_back(
        {{"heading", section.heading}, {"text", section.text}, {"rows", rows}});
  }
  out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

int show(const ShowOptions& options, OutputFormat format) {
  const models::ModelSource source(options.model);
  if (const std::optional<Program> program = source.program(true)) {  // only read, not run
    const Page page = describe_program(*program, source.name());
    if (format == OutputFormat::Json) {
      print_json(page);
    } else {
      print_page(page, out());
    }
    return 0;
  }
  const models::LoadedDocument loaded = source.document();
  if (loaded.document && !options.as_graph && !options.every_node) {
    if (format == OutputFormat::Json) {
      print_json(loaded.document->describe());
    } else {
      print_page(loaded.document->describe(), out());
    }
    return 0;
  }
  const Graph graph = [&] {
    if (loaded.document) return loaded.document->graph();
    try {
      return source.graph();
    } catch (const Error& error) {
      // The file's metadata can be shown even with unsupported operators.
      if (error.kind() != ErrorKind::Unsupported || format == OutputFormat::Json) throw;
      std::optional<Page> page;
      try {
        page = frontends::onnx::describe_file(options.model);
      } catch (const Error&) {
        // It has another format: the first error is reported.
      }
      if (page) {
        print_page(*page, out());
        out() << "\n";
      }
      throw;
    }
  }();
  const models::GraphSummary summary = models::summarize(graph);
  if (format == OutputFormat::Json) {
    print_json(graph, summary, options.every_node);
  } else {
    print_table(graph, summary, options.every_node);
  }
  return 0;
}

}  // namespace

void add_show(Commands& commands) {
  const auto [app, options] = commands.add<ShowOptions>(
      "show", "Summarize a model: inputs, outputs, nodes, parameters, flops, bytes", show);
  app.add_option("model", options.model, kModelHelp)->required();
  app.add_flag("--nodes", options.every_node, "list every node");
  app.add_flag("--graph", options.as_graph, "for another system's document: the graph in it");
}

}  // namespace tenon::cli
