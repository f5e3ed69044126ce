#pragma once

#include "ir/graph.h"

#include <iosfwd>
#include <string>
#include <string_view>

namespace tenon::inline ir {

/// Prints the text form (docs/ir.md); `parse_graph` returns an identical graph.
std::string print(const Graph& graph);
void print(const Graph& graph, std::ostream& out);

/// Parses one graph and infers result types. Throws Error with line and column (and `source_name`)
/// for text that is not a graph of these ops.
Graph parse_graph(std::string_view text, const OpTable& ops, std::string_view source_name = "text");

/// Prints an attribute's value or a constant ("f32[2] [1, 2]") as in a graph.
std::string print(const AttrValue& value);
std::string print(const Constant& constant);
/// Parses the text form of a constant.
Constant parse_constant(std::string_view text);
/// Parses "{axis = 1, perm = [0, 1]}" (or "") for an op; for tests and command lines.
Attributes parse_attributes(std::string_view text, const OpDef& op);

/// Prints a value or node name: bare if made of letters, digits and `_ . / $ @ -`, else quoted.
std::string print_name(std::string_view name);

}  // namespace tenon::inline ir
