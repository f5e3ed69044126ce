#pragma once

#include "ir/graph.h"

#include <iosfwd>
#include <string>
#include <string_view>

namespace tenon {

/// The text form, as docs/ir.md describes it; `parse_graph` gives back an identical graph.
std::string print(const Graph& graph);
void print(const Graph& graph, std::ostream& out);

/// Reads one graph; types of results are inferred. Throws Error with line and column (and
/// `source_name`) for anything that is not a graph of these ops.
Graph parse_graph(std::string_view text, const OpTable& ops, std::string_view source_name = "text");

/// Text forms of an attribute's value and of a constant ("f32[2] [1, 2]"), as they stand in a
/// graph.
std::string print(const AttrValue& value);
std::string print(const Constant& constant);
/// Reads the text form of a constant.
Constant parse_constant(std::string_view text);
/// Reads "{axis = 1, perm = [0, 1]}" (or "") for an op; for tests and command lines.
Attributes parse_attributes(std::string_view text, const OpDef& op);

/// A value or node name as it is printed: bare if made of letters, digits and `_ . / $ @ -`.
std::string print_name(std::string_view name);

}  // namespace tenon
