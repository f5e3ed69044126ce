#include "documents/tensorscope/check.h"
#include "documents/tensorscope/export.h"
#include "documents/tensorscope/import.h"
#include "documents/tensorscope/names.h"
#include "unit/documents/tensorscope_tables.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <map>

namespace tenon::documents::tensorscope::tensorscope_write_test {
namespace {

// The graph keeps the whole table, including the numbers of the ten copied edges, which are derived
// from TensorFlow's numbering.
TEST(TensorScope, TableRoundTripsThroughItsGraph) {
  const TensorScopeTable table = read_table(alexnet);
  const TensorScopeTable made = export_table(import_graph(table, reconstruct(table), "table"));
  EXPECT_EQ(lines_of(print_table(table)), lines_of(print_table(made)));
}

// The document's forward rows from zoo:alexnet: NHWC gives the rows of layout-free tensors and of
// LRN, NCHW those that TensorFlow's layout optimiser transposed.
TEST(TensorScope, ForwardRowsOfTheZoo) {
  const std::set<std::string> document = lines_of(read_fixture(alexnet));
  std::set<std::string> common;
  const std::map<std::string, std::size_t> expected = {{"NHWC", 45}, {"NCHW", 59}};
  for (const auto& [layout, count] : expected) {
    const Graph graph = zoo::build("alexnet?batch=128,images=variable,layout=" + layout);
    std::size_t found = 0;
    for (const std::string& line : lines_of(print_table(export_table(graph)))) {
      if (!document.contains(line)) continue;
      ++found;
      common.insert(line);
    }
    EXPECT_EQ(found, count) << layout;
  }
  // All 62 rows without "gradients", transposes, permutations, fetches and copies; and _SOURCE.
  std::size_t forward = 0;
  for (const std::string& line : document) {
    const bool is_other = line.find("gradients/") != std::string::npos ||
                          line.find("LayoutOptimizer") != std::string::npos;
    forward += !is_other;
    EXPECT_TRUE(is_other || common.contains(line)) << line;
  }
  EXPECT_EQ(forward, 63u);
}

// The table of every network round-trips, and each node has a row with its shape.
TEST(TensorScope, TablesOfTheZoo) {
  for (const zoo::Network& network : zoo::networks()) {
    const Graph graph = zoo::build(network.name);
    const TensorScopeTable table = export_table(graph);
    const std::string text = print_table(table);
    const TensorScopeTable again = parse_table(text, network.name);
    EXPECT_EQ(print_table(again), text) << network.name;
    for (std::size_t k = 0; k < again.rows.size(); ++k) {
      EXPECT_EQ(again.rows[k].inputs, table.rows[k].inputs) << print_row(table.rows[k]);
      EXPECT_EQ(again.rows[k].outputs, table.rows[k].outputs) << print_row(table.rows[k]);
    }
    std::size_t missing = 0;
    for (const NodeId id : graph.nodes_in_order()) {
      const Node& node = graph.node(id);
      if (node.results.empty() || !node.results[0]) continue;
      const std::string& name = node.name.empty() ? graph.value(node.results[0]).name : node.name;
      missing += again.find_node(name) < 0;
    }
    // Shapes of biases, bounds of relu6, and names that suggest another operator.
    EXPECT_LE(missing, 8u) << network.name;
    reconstruct(again);
  }
}

// Chains whose names and shapes determine everything keep their edges.
TEST(TensorScope, KeepsEdgesOfUnambiguousChains) {
  for (const char* spec : {"alexnet", "alexnet?layout=NCHW", "mlp", "vgg16"}) {
    const Graph graph = zoo::build(spec);
    const TensorScopeTable table = export_table(graph);
    const DataFlow step = reconstruct(table);
    std::size_t compared = 0;
    for (const NodeId id : graph.nodes_in_order()) {
      const ValueId result = graph.node(id).results[0],
                    operand = graph.constant_of(result) ? ValueId() : graph.node(id).operands[0];
      std::string name = graph.value(result).name;
      // A convolution with a bias is two rows.
      if (graph.op_name(id) == "conv" && graph.node(id).operands.size() == 3) name += "/Conv2D";
      if (!operand || table.find_node(name) < 0) continue;
      const std::string expected = graph.value(operand).producer
                                       ? graph.value(operand).name
                                       : concat("_arg_", graph.value(operand).name, "_0_0");
      EXPECT_EQ(sources_of(table, step, name).at(0), expected) << spec << " " << name;
      ++compared;
    }
    EXPECT_GE(compared, 8u) << spec;
    EXPECT_EQ(mismatches_of(check_table(table, step)), "") << spec;
    const Graph again = import_graph(table, step, spec);
    const auto type = [](const Graph& of) { return of.value(of.outputs()[0]).type.tensor().dims; };
    EXPECT_EQ(type(again), type(graph)) << spec;
  }
}

TEST(TensorScope, MatchesTensorFlowsNames) {
  const Graph graph = zoo::build("alexnet?form=torch,size=63,dense=0");
  const std::set<std::string> lines = lines_of(print_table(export_table(graph)));
  for (const char* line :
       {"_arg_x_0_0, (1), (1x3x63x63), CPU, 0",
        "edge_12__arg_x_0_0:MEMCPYHtoD, (no input), (output 47628 bytes), GPU, 0",
        // TensorFlow pads implicitly only as SAME.
        "conv1/Conv2D/Pad, (1x3x63x63), (int32 4x2), (1x3x67x67), GPU, 0",
        "conv1/Conv2D, (1x3x67x67), (11x11x3x64), (1x64x15x15), GPU, 0",
        "conv1/BiasAdd, (1x64x15x15), (64x1), (1x64x15x15), GPU, 0",
        "conv1/BiasAdd:BiasAdd, (no input), (no output), GPU, 0",
        "conv1/weights, (1), (11x11x3x64), GPU, 0", "_SOURCE, (1), (no output), GPU, 0"}) {
    EXPECT_TRUE(lines.contains(line)) << line;
  }
  Graph on_cpu = zoo::build("mlp");
  on_cpu.metadata["tensorscope.device"] = "CPU:0";
  const TensorScopeTable table = export_table(on_cpu);
  EXPECT_EQ(count_kind(table, RowKind::Stream), 0u);
  EXPECT_EQ(count_kind(table, RowKind::Copy), 0u);
  EXPECT_THROW(export_table(zoo::build("mlp?batch=N")), Error);
}

}  // namespace
}  // namespace tenon::documents::tensorscope::tensorscope_write_test
