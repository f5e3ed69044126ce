#include "base/error.h"
#include "documents/aitemplate/kernel_choices.h"
#include "documents/aitemplate/read_dump.h"
#include "documents/document.h"
#include "driver/compile.h"
#include "driver/tuned_kernels.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "tune/tuner.h"
#include "unit/documents/mutation.h"

#include <gtest/gtest.h>

namespace tenon::tuned_kernels_test {
namespace {

// Fills a cache with timings of every nest of a graph, with these winners.
void pretend(tune::TuningCache& cache, const Graph& graph,
             std::vector<tune::TunedKernel::Range> ranges) {
  for (const codegen::Decision& decision : codegen::decide(graph, driver::cpu_options())) {
    tune::TunedKernel kernel;
    kernel.place = tune::tuning_place(*driver::cpu_options().target, 0);
    kernel.work = decision.work;
    kernel.symbol = decision.symbols.empty() ? "" : decision.symbols.begin()->first;
    kernel.timings = {{"loops", 1, 0.5, 1}};
    kernel.ranges = ranges;
    cache.store(kernel);
  }
}

std::string dump_of(const Graph& graph) {
  return documents::find_document_format("aitemplate")->from_graph(graph)->text("");
}

std::vector<documents::aitemplate::ExecEntry> entries_of(const std::string& dump,
                                                         const std::string& op) {
  for (const documents::aitemplate::OperatorRow& row :
       documents::aitemplate::read_dump(dump, "dump").dump.operators) {
    if (row.op == op && row.exec_path) return row.exec_path->entries;
  }
  return {};
}

std::size_t misses(const std::string& dump) {
  return documents::find_document_format("aitemplate")
      ->read(dump, "dump")
      ->check()
      .mismatches()
      .size();
}

Graph convolution(const std::string& batch, const std::string& symbols = "") {
  return parse_graph(concat("graph ", symbols, "(x: f32[", batch, R"(, 8, 8, 16]@NHWC) {
  w: f32[8, 3, 3, 16]@OHWI = constant f32[8, 3, 3, 16] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w)
  return y
}
)"),
                     all_ops());
}

TEST(TunedKernels, ConvolutionWithOneBatch) {
  const Graph graph = convolution("4");
  tune::TuningCache cache;
  EXPECT_EQ(dump_of(driver::with_tuned_kernels(graph, cache, 0)), dump_of(graph));
  pretend(cache, graph, {{0, 0, "winograd 4x4 by 24"}});
  const std::string dump = dump_of(driver::with_tuned_kernels(graph, cache, 0));
  const auto entries = entries_of(dump, "conv2d");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].condition, "NI == 4 && HI == 8 && WI == 8 && CI == 16");
  EXPECT_EQ(documents::aitemplate::algorithm_of(entries[0]), "tenon_winograd_4x4_by_24");
  EXPECT_EQ(misses(dump), 0U);
}

TEST(TunedKernels, SymbolicBatchInRanges) {
  const Graph graph = convolution("N", "<N in [1, 64]> ");
  tune::TuningCache cache;
  pretend(cache, graph, {{1, 1, "tiles 2x32"}, {2, 17, "tiles 6x16"}, {18, 64, "loops"}});
  const std::string dump = dump_of(driver::with_tuned_kernels(graph, cache, 0));
  const auto entries = entries_of(dump, "conv2d");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].condition, "NI == 1 && HI == 8 && WI == 8 && CI == 16");
  EXPECT_EQ(entries[1].condition, "NI >= 2 && NI <= 17 && HI == 8 && WI == 8 && CI == 16");
  EXPECT_EQ(entries[2].condition, "NI >= 18 && NI <= 64 && HI == 8 && WI == 8 && CI == 16");
  EXPECT_EQ(documents::aitemplate::algorithm_of(entries[2]), "tenon_loops");
  EXPECT_EQ(misses(dump), 0U);
}

TEST(TunedKernels, Products) {
  const Graph fixed = parse_graph(
      "graph (a: f32[5, 12], b: f32[12, 8]) {\n  y = matmul(a, b)\n  return y\n}\n", all_ops());
  tune::TuningCache cache;
  pretend(cache, fixed, {{0, 0, "tiles 6x16"}});
  std::string dump = dump_of(driver::with_tuned_kernels(fixed, cache, 0));
  auto entries = entries_of(dump, "gemm_rrr");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].condition, "M == 5 && N == 8 && K == 12");
  EXPECT_EQ(documents::aitemplate::algorithm_of(entries[0]), "tenon_tiles_6x16");
  EXPECT_EQ(misses(dump), 0U);

  const Graph symbolic = parse_graph(
      "graph <N in [1, 64]> (a: f32[N, 12], b: f32[12, 8]) {\n  y = matmul(a, b)\n  return y\n}\n",
      all_ops());
  pretend(cache, symbolic, {{1, 9, "tiles 2x32"}, {10, 64, "tiles 6x16"}});
  dump = dump_of(driver::with_tuned_kernels(symbolic, cache, 0));
  entries = entries_of(dump, "gemm_rrr");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].condition, "M == 9 && N == 8 && K == 12");
  EXPECT_EQ(entries[0].choice.find("exec_cond")->text, "M >= 1 && M <= 9 && N == 8 && K == 12");
  EXPECT_EQ(entries[1].choice.find("exec_cond")->text, "M >= 10 && M <= 64 && N == 8 && K == 12");
  EXPECT_EQ(misses(dump), 0U);
  // Detects a gap between ranges.
  const std::size_t at = dump.find("M >= 10");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(misses(dump.replace(at, 7, "M >= 12")), 0U);
}

// In AITemplate's own file only the empty conditions are filled in.
TEST(TunedKernels, AITemplateFile) {
  const std::string text = read_fixture("aitemplate_conv_add.graph.txt");
  const Graph graph = documents::find_document_format("aitemplate")->read(text, "file")->graph();
  tune::TuningCache cache;
  pretend(cache, graph, {{0, 0, "tiles 4x16"}});
  const std::string filled = documents::aitemplate::print_dump(
      documents::aitemplate::with_kernels(documents::aitemplate::read_dump(text, "file").dump,
                                          driver::with_tuned_kernels(graph, cache, 0)));
  const auto entries = entries_of(filled, "conv2d");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].condition, "NI == 1 && HI == 28 && WI == 28 && CI == 128");
  EXPECT_EQ(documents::aitemplate::algorithm_of(entries[0]), "tenon_tiles_4x16");
  EXPECT_EQ(misses(filled), 0U);
}

}  // namespace
}  // namespace tenon::tuned_kernels_test
