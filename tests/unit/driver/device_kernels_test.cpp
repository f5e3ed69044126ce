#include "base/error.h"
#include "driver/compile.h"
#include "driver/tuning/device_kernels.h"
#include "driver/tuning/device_ways.h"
#include "frontends/aitemplate/read_dump.h"
#include "frontends/document.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "passes/train/train.h"
#include "unit/codegen/cuda_emulation.h"

#include <gtest/gtest.h>

namespace tenon::device_kernels_test {
namespace {

Graph convolution(const std::string& batch, const std::string& symbols = "") {
  return parse_graph(concat("graph ", symbols, "(x: f32[", batch, R"(, 8, 8, 16]@NHWC) {
  w: f32[8, 3, 3, 16]@OHWI = constant f32[8, 3, 3, 16] normal(seed = 1, mean = 0.0, deviation = 0.1)
  y = conv(x, w)
  return y
}
)"),
                     all_ops());
}

codegen::CompileOptions device_options() {
  codegen::CompileOptions options = cpu_options();
  options.device = testing::emulated_target();
  return options;
}

bool has_device() {
  try {
    device_place();
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Conditions and kernels of the convolution in the graph's dump.
std::vector<std::pair<std::string, std::string>> kernels_in(const Graph& graph) {
  const std::string dump = find_document_format("aitemplate")->from_graph(graph)->text("");
  std::vector<std::pair<std::string, std::string>> list;
  for (const aitemplate::OperatorRow& row : aitemplate::read_dump(dump, "dump").dump.operators) {
    if (!row.exec_path) continue;
    for (const aitemplate::ExecEntry& entry : row.exec_path->entries)
      list.emplace_back(entry.condition.substr(0, entry.condition.find(" && HI")),
                        aitemplate::algorithm_of(entry).value_or("none"));
  }
  const auto checked = find_document_format("aitemplate")->read(dump, "dump")->check();
  EXPECT_EQ(checked.mismatches().size(), 0U);
  return list;
}

using Kernels = std::vector<std::pair<std::string, std::string>>;

// As if all nodes had been timed on that device.
void pretend(TuningCache& cache, const Graph& graph, const std::string& device,
             const std::string& winner) {
  for (const NodeId node : graph.nodes_in_order()) {
    TunedKernel kernel;
    kernel.place = {device, "libraries", 1};
    kernel.work = device_work(graph, node);
    kernel.timings = {{winner, 0, 0.5, 1}};
    kernel.ranges = {{0, 0, winner}};
    cache.store(kernel);
  }
}

TEST(DeviceKernels, WithoutTimingsTheUntunedChoiceIsNamedAsSuch) {
  TuningCache cache;
  const DeviceKernels made = with_device_kernels(convolution("4"), cache, device_options(), false);
  EXPECT_EQ(kernels_in(made.graph), (Kernels{{"NI == 4", "tenon_loops_untuned"}}));
  EXPECT_EQ(made.timed, 0U);
  EXPECT_GT(made.untuned, 0U);
  EXPECT_EQ(made.device, "");
}

TEST(DeviceKernels, WithoutADeviceTheCacheTellsOfTheOneItKnowsBest) {
  if (has_device()) GTEST_SKIP() << "there is a device, whose timings count";
  const Graph graph = convolution("4");
  TuningCache cache;
  pretend(cache, convolution("5"), "a GPU that timed something else", "cublaslt");
  pretend(cache, graph, "NVIDIA H200", "cudnn#3");
  const DeviceKernels made = with_device_kernels(graph, cache, device_options(), false);
  EXPECT_EQ(kernels_in(made.graph), (Kernels{{"NI == 4", "tenon_cudnn_3"}}));
  EXPECT_EQ(made.untuned, 0U);
  EXPECT_EQ(made.device, "NVIDIA H200 (libraries)");
}

TEST(DeviceKernels, ASymbolicBatchInRangesUpToWhatWasTimed) {
  if (has_device()) GTEST_SKIP() << "there is a device, whose timings count";
  const Graph graph = convolution("N", "<N in [1, 8]> ");
  TuningCache cache;
  for (const auto& [value, winner] : std::vector<std::pair<std::int64_t, std::string>>{
           {1, "wgmma"}, {2, "wgmma"}, {4, "cudnn#1"}})
    pretend(cache, with_symbols(graph, {{"N", Dim(value)}}), "NVIDIA H200", winner);
  const DeviceKernels made = with_device_kernels(graph, cache, device_options(), false);
  EXPECT_EQ(kernels_in(made.graph), (Kernels{{"NI >= 1 && NI <= 2", "tenon_wgmma"},
                                             {"NI >= 3 && NI <= 4", "tenon_cudnn_1"},
                                             {"NI >= 5 && NI <= 8", "tenon_loops_untuned"}}));
  EXPECT_EQ(made.timed, 0U);  // at every extent
}

TEST(DeviceKernels, TimingWithoutADeviceIsAnError) {
  if (has_device()) GTEST_SKIP() << "there is a device";
  TuningCache cache;
  EXPECT_THROW(with_device_kernels(convolution("4"), cache, device_options(), true), Error);
}

}  // namespace
}  // namespace tenon::device_kernels_test
