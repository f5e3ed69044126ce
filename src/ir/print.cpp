#include "base/error.h"
#include "base/text.h"
#include "ir/constant_text.h"
#include "ir/lexer.h"
#include "ir/node_rules.h"
#include "ir/text.h"

#include <algorithm>
#include <ostream>

namespace tenon::inline ir {
namespace {

constexpr std::size_t kFlushBytes = 1 << 16;

void append_name(std::string& out, std::string_view name) {
  const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(), is_name_char);
  const bool means_more = name == "_" || name == "@" || name == "return" || name == "metadata";
  if (is_word && !means_more) {
    out += name;
  } else {
    out += quote(name);
  }
}

/// Appends an attribute's value; `is_word` prints a string without quotes.
struct AttrPrinter {
  std::string& out;
  bool is_word = false;

  template <class List, class Append>
  void list(const List& items, Append append) const {
    out += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ", ";
      append(items[i]);
    }
    out += ']';
  }

  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(const Dim& value) const { out += to_string(value); }
  void operator()(double value) const { out += format_real(value); }
  void operator()(const std::string& value) const {
    if (is_word) {
      append_name(out, value);
    } else {
      out += quote(value);
    }
  }
  void operator()(DType value) const { out += to_string(value); }
  void operator()(const Dims& values) const { list(values, *this); }
  void operator()(const std::vector<double>& values) const { list(values, *this); }
  void operator()(const std::vector<std::string>& values) const {
    list(values, [&](const std::string& value) { out += quote(value); });
  }
  void operator()(const Constant& value) const { append_constant(out, value); }
  void operator()(const Type& value) const { out += to_string(value); }
};

void collect_symbols(const Attributes& attrs, SymbolRanges& symbols) {
  for (const auto& [name, value] : attrs) {
    if (const auto* type = std::get_if<Type>(&value)) collect_symbols(*type, symbols);
    if (const auto* dim = std::get_if<Dim>(&value)) dim->collect_symbols(symbols);
    if (const auto* dims = std::get_if<Dims>(&value)) {
      for (const Dim& dim : *dims) dim.collect_symbols(symbols);
    }
  }
}

// Collects the symbols in the graph's text, including its bodies.
void collect_symbols(const Graph& graph, SymbolRanges& symbols) {
  for (ValueId input : graph.inputs()) collect_symbols(graph.value(input).type, symbols);
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    collect_symbols(node.attrs, symbols);
    for (ValueId result : node.results) {
      if (result && graph.has_stated_type(result)) {
        collect_symbols(graph.value(result).type, symbols);
      }
    }
    for (const Graph& body : node.bodies) collect_symbols(body, symbols);
  }
}

class GraphPrinter {
 public:
  explicit GraphPrinter(std::ostream* stream) : stream_(stream) {}

  void print_outermost(const Graph& graph) {
    SymbolRanges symbols;
    collect_symbols(graph, symbols);
    std::erase_if(symbols, [](const auto& symbol) {
      return symbol.second == Range{0, kMaxExtent};
    });
    print_graph(graph, symbols, 0);
    out_ += '\n';
    if (stream_) *stream_ << out_;
  }

  std::string take() { return std::move(out_); }

 private:
  void print_graph(const Graph& graph, const SymbolRanges& symbols, std::size_t depth) {
    out_ += "graph ";
    if (!graph.name.empty()) {
      append_name(out_, graph.name);
      out_ += ' ';
    }
    if (!symbols.empty()) print_symbols(symbols);
    out_ += '(';
    separated(graph.inputs(), [&](ValueId input) { print_typed(graph.value(input)); });
    out_ += ") {\n";
    for (const auto& [key, text] : graph.metadata) {
      indent(depth + 1);
      out_ += concat("metadata ", quote(key), " = ", quote(text), "\n");
    }
    print_states(graph);
    for (NodeId id : graph.nodes_in_order()) {
      indent(depth + 1);
      print_node(graph, graph.node(id), depth + 1);
      out_ += '\n';
      flush_if_full();
    }
    indent(depth + 1);
    out_ += graph.outputs().empty() ? "return" : "return ";
    separated(graph.outputs(),
              [&](ValueId output) { append_name(out_, graph.value(output).name); });
    out_ += '\n';
    indent(depth);
    out_ += '}';
  }

  // An output's name stands for its first position that no earlier state has.
  void print_states(const Graph& graph) {
    std::vector<bool> is_taken(graph.outputs().size(), false);
    for (const Graph::State& state : graph.states) {
      const ValueId next = graph.outputs()[state.output];
      out_ += "  state ";
      append_name(out_, graph.value(graph.inputs()[state.input]).name);
      out_ += " to ";
      append_name(out_, graph.value(next).name);
      std::size_t first = 0;
      while (is_taken[first] || graph.outputs()[first] != next) ++first;
      if (first != state.output) out_ += concat(" at ", state.output);
      is_taken[state.output] = true;
      if (!state.may_overwrite) out_ += " double_buffered";
      if (state.starts_with_zeros || state.initial) out_ += " = ";
      if (state.starts_with_zeros) out_ += "zeros";
      if (state.initial) append_constant(out_, *state.initial);
      out_ += '\n';
    }
  }

  void print_symbols(const SymbolRanges& symbols) {
    out_ += '<';
    bool is_first = true;
    for (const auto& [name, range] : symbols) {
      if (!std::exchange(is_first, false)) out_ += ", ";
      out_ += concat(Dim::symbol(name, range), " in [", range.lo, ", ", range.hi, "]");
    }
    out_ += "> ";
  }

  void print_node(const Graph& graph, const Node& node, std::size_t depth) {
    separated(node.results, [&](ValueId result) { print_result(graph, result); });
    if (!node.results.empty()) out_ += " = ";
    out_ += node.op->name;
    if (node.op->name == "constant") {  // op-name: has a syntax of its own that shows its value
      const auto* value = std::get_if<Constant>(node.attrs.find("value"));
      TENON_ASSERT(value, "a constant has a value");
      out_ += ' ';
      append_constant(out_, *value);
    } else {
      out_ += '(';
      print_operands(graph, node);
      out_ += ')';
      print_attributes(node);
    }
    const bool names_result =
        !node.results.empty() && node.results[0] && graph.value(node.results[0]).name == node.name;
    if (!node.name.empty() && !names_result) out_ += concat(" @ ", quote(node.name));
    for (std::size_t i = 0; i < node.bodies.size(); ++i) {
      std::string_view label = node.op->bodies[std::min(i, node.op->bodies.size() - 1)];
      if (label.ends_with('*')) label.remove_suffix(1);
      out_ += concat(" ", label, " = ");
      print_graph(node.bodies[i], {}, depth);
    }
  }

  void print_result(const Graph& graph, ValueId result) {
    if (!result) {
      out_ += '_';
    } else if (graph.has_stated_type(result)) {
      print_typed(graph.value(result));
    } else {
      append_name(out_, graph.value(result).name);
    }
  }

  void print_typed(const Value& value) {
    append_name(out_, value.name);
    out_ += ": ";
    out_ += to_string(value.type);
  }

  // Prints operands by position up to the first that is missing or a dynamic attribute, by name
  // from there on.
  void print_operands(const Graph& graph, const Node& node) {
    const std::vector<OperandDef>& defs = node.op->operands;
    bool is_first = true, is_named = false;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const OperandDef& def = defs[std::min(i, defs.size() - 1)];
      if (!node.operands[i] || def.is_dynamic_attribute) is_named = true;
      if (!node.operands[i]) continue;
      if (!std::exchange(is_first, false)) out_ += ", ";
      if (is_named) {
        out_ += def.name;
        out_ += " = ";
      }
      append_name(out_, graph.value(node.operands[i]).name);
    }
  }

  void print_attributes(const Node& node) {
    if (node.attrs.is_empty()) return;
    out_ += " {";
    bool is_first = true;
    for (const AttrDef& def : node.op->attrs) {
      const AttrValue* value = node.attrs.find(def.name);
      if (!value) continue;
      if (!std::exchange(is_first, false)) out_ += ", ";
      out_ += def.name;
      out_ += " = ";
      std::visit(AttrPrinter{out_, def.kind == AttrKind::Word}, *value);
    }
    out_ += '}';
  }

  template <class Append>
  void separated(const std::vector<ValueId>& values, Append append) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ", ";
      append(values[i]);
    }
  }

  void indent(std::size_t depth) { out_.append(2 * depth, ' '); }

  void flush_if_full() {
    if (!stream_ || out_.size() < kFlushBytes) return;
    *stream_ << out_;
    out_.clear();
  }

  std::string out_;
  std::ostream* stream_;
};

}  // namespace

std::string print(const Graph& graph) {
  GraphPrinter printer(nullptr);
  printer.print_outermost(graph);
  return printer.take();
}

void print(const Graph& graph, std::ostream& out) { GraphPrinter(&out).print_outermost(graph); }

std::string print(const AttrValue& value) {
  std::string out;
  std::visit(AttrPrinter{out}, value);
  return out;
}

std::string print_name(std::string_view name) {
  std::string out;
  append_name(out, name);
  return out;
}

}  // namespace tenon::inline ir
