#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "ir/graph.h"

namespace tenon::codegen {

/// What a node runs as.
enum class Work : std::uint8_t {
  Kernels,    ///< generated code
  Operators,  ///< its operator's C++ function: nothing describes it element by element, or its values
              ///< are text or sequences, or their rank or extents follow from data
  Control,    ///< its operator's function too, with compiled bodies
};

/// Why no kernel computes a node; empty where one does. Asks about the node alone.
std::string kernel_refusal(const Graph& graph, NodeId node);

/// The nodes of a graph, constants aside, in groups that run one after another. Nodes of a group do
/// the same kind of work, and a group of control flow has one node.
struct Partition {
  struct Group {
    Work work = Work::Kernels;
    std::vector<NodeId> nodes;  ///< in the graph's order
  };
  std::vector<Group> groups;
  IdMap<NodeId, std::uint32_t> group_of;  ///< of a constant: meaningless

  explicit Partition(const Graph& graph);
};

/// Symbols in a type, in types of elements too.
void collect_symbols(const Type& type, std::set<std::string>& symbols);
/// Symbols in what the node computes with: its attributes and the types around it.
void collect_symbols(const Graph& graph, NodeId node, std::set<std::string>& symbols);
/// Symbols that stand alone as an extent: whoever has the value knows them.
void collect_told_symbols(const Type& type, std::set<std::string>& symbols);

}  // namespace tenon::codegen
