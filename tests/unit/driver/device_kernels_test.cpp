#include "base/error.h"
#include "codegen/assemble.h"
#include "codegen/cuda/cuda_target.h"
#include "codegen/select.h"
#include "documents/aitemplate/read_dump.h"
#include "documents/document.h"
#include "driver/compile.h"
#include "driver/device_kernels.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "passes/train/train.h"
#include "tune/device_tuning.h"
#include "tune/tuner.h"

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
  codegen::CompileOptions options = driver::cpu_options();
  options.target = codegen::cuda::cuda_target({.architecture = "sm_90a"});
  return options;
}

bool has_device() {
  try {
    tune::device_place();
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Conditions and kernels of the convolution in the graph's dump.
std::vector<std::pair<std::string, std::string>> kernels_in(const Graph& graph) {
  const std::string dump =
      documents::find_document_format("aitemplate")->from_graph(graph)->text("");
  std::vector<std::pair<std::string, std::string>> list;
  for (const documents::aitemplate::OperatorRow& row :
       documents::aitemplate::read_dump(dump, "dump").dump.operators) {
    if (!row.exec_path) continue;
    for (const documents::aitemplate::ExecEntry& entry : row.exec_path->entries)
      list.emplace_back(entry.condition.substr(0, entry.condition.find(" && HI")),
                        documents::aitemplate::algorithm_of(entry).value_or("none"));
  }
  const auto checked = documents::find_document_format("aitemplate")->read(dump, "dump")->check();
  EXPECT_EQ(checked.mismatches().size(), 0U);
  return list;
}

using Kernels = std::vector<std::pair<std::string, std::string>>;

void keep(tune::TuningCache& cache, const tune::TuningPlace& place, const std::string& work,
          const std::string& winner) {
  tune::TunedKernel kernel;
  kernel.place = place;
  kernel.work = work;
  kernel.timings = {{winner, 0, 0.5, 1}};
  kernel.ranges = {{0, 0, winner}};
  cache.store(kernel);
}

// Fills a cache as if all kernels had been timed on that device, with library candidates among the
// winners.
void pretend(tune::TuningCache& cache, const Graph& graph, const std::string& device,
             const std::string& winner, const std::string& way = "") {
  const tune::TuningPlace place{device, "tenon 12, libraries", 1};
  codegen::CompileOptions options = device_options();
  for (const codegen::Decision& decision : codegen::decide(graph, options))
    keep(cache, place, decision.work, winner);
  options.choose = tune::tuned_choice(cache, place);
  const Program program = codegen::assemble(codegen::select(graph, options).tasks, "cuda:sm_90a");
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    if (const auto work = tune::library_work(program, k))
      keep(cache, tune::library_tuning_place(place), *work, way);
  }
}

TEST(DeviceKernels, MarksUntunedChoices) {
  if (has_device()) GTEST_SKIP() << "there is a device, whose timings count";
  tune::TuningCache cache;
  const driver::DeviceKernels made =
      driver::with_device_kernels(convolution("4"), cache, device_options(), false);
  EXPECT_EQ(kernels_in(made.graph), (Kernels{{"NI == 4", "tenon_cudnn_untuned"}}));
  EXPECT_EQ(made.timed, 0U);
  EXPECT_GT(made.untuned, 0U);
  EXPECT_EQ(made.device, "");
}

TEST(DeviceKernels, UsesTheDeviceWithTimingsOfTheGraph) {
  if (has_device()) GTEST_SKIP() << "there is a device, whose timings count";
  const Graph graph = convolution("4");
  tune::TuningCache cache;
  pretend(cache, convolution("5"), "a GPU that timed something else", "loops");
  pretend(cache, graph, "NVIDIA H200", "cudnn", "cudnn#3");
  const driver::DeviceKernels made =
      driver::with_device_kernels(graph, cache, device_options(), false);
  EXPECT_EQ(kernels_in(made.graph), (Kernels{{"NI == 4", "tenon_cudnn_3"}}));
  EXPECT_EQ(made.untuned, 0U);
  EXPECT_EQ(made.device, "NVIDIA H200 (libraries)");
}

TEST(DeviceKernels, SymbolicBatchInTimedRanges) {
  if (has_device()) GTEST_SKIP() << "there is a device, whose timings count";
  const Graph graph = convolution("N", "<N in [1, 8]> ");
  tune::TuningCache cache;
  const auto at = [&](std::int64_t value) {
    return passes::with_symbols(graph, {{"N", Dim(value)}});
  };
  pretend(cache, at(1), "NVIDIA H200", "loops");
  pretend(cache, at(2), "NVIDIA H200", "loops");
  pretend(cache, at(4), "NVIDIA H200", "cudnn", "cudnn#1");
  const driver::DeviceKernels made =
      driver::with_device_kernels(graph, cache, device_options(), false);
  EXPECT_EQ(kernels_in(made.graph), (Kernels{{"NI >= 1 && NI <= 2", "tenon_loops"},
                                             {"NI >= 3 && NI <= 4", "tenon_cudnn_1"},
                                             {"NI >= 5 && NI <= 8", "tenon_cudnn_untuned"}}));
  EXPECT_EQ(made.timed, 0U);  // at every extent
}

TEST(DeviceKernels, RefusesTimingWithoutADevice) {
  if (has_device()) GTEST_SKIP() << "there is a device";
  tune::TuningCache cache;
  EXPECT_THROW(driver::with_device_kernels(convolution("4"), cache, device_options(), true), Error);
}

}  // namespace
}  // namespace tenon::device_kernels_test
