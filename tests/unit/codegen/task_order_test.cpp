#include "codegen/select.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "nests/index_map.h"
#include "ops/definition/registry.h"
#include "passes/train/train.h"
#include "program/verify.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

// Four large values, all defined before the first use.
constexpr const char* kWide = R"(graph (x: f32[64], w: f32[4096, 64]) {
  a = mul(x, w)
  b = sub(x, w)
  c = div(w, x)
  d = add(x, w)
  ra = reduce_sum(a) {axes = [0]}
  rb = reduce_sum(b) {axes = [0]}
  rc = reduce_sum(c) {axes = [0]}
  rd = reduce_sum(d) {axes = [0]}
  e = add(ra, rb)
  f = add(rc, rd)
  y = add(e, f)
  return y
}
)";

TEST(TaskOrder, DefinesValuesNearTheirUse) {
  const Graph graph = parse_graph(kWide, all_ops());
  codegen::CompileOptions options = driver::cpu_options();
  options.keeps_record = true;
  const codegen::Compiled compiled = codegen::compile(graph, options);
  const Program& program = compiled.program;
  verify(program);
  EXPECT_LT(program.arena_bytes, 2u * 4096 * 64 * 4);
  // Each decision refers to its own steps.
  ASSERT_FALSE(compiled.decisions.empty());
  for (const codegen::Decision& decision : compiled.decisions) {
    for (std::size_t k = 0; k < decision.step_count; ++k) {
      const std::string& name = program.steps.at(decision.first_step + k).name;
      EXPECT_TRUE(decision.name.starts_with(name)) << decision.name << " and " << name;
    }
  }
  const std::vector<Datum> inputs = models::random_inputs(graph, 3);
  const Tensor all = CompiledModel(program, 2).run(inputs).front().tensor();
  EXPECT_EQ(all.size(), 64);
}

// A kernel receives only the buffers that it accesses, so that no other buffer lives longer: for
// example not an image of which it reads a padded copy.
TEST(TaskOrder, KernelsReceiveOnlyUsedBuffers) {
  const Graph model = parse_graph(R"(graph (x: f32[2, 8, 16, 16]) {
  v = constant f32[32, 8, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)
  w = constant f32[16, 32, 5, 5] normal(seed = 2, mean = 0.0, deviation = 0.1)
  a = conv(x, v) {pads = [1, 1, 1, 1]}
  b = relu(a)
  c = conv(b, w) {pads = [2, 2, 2, 2]}
  y = reduce_mean(c) {axes = [2, 3], keep_axes = false}
  return y
}
)",
                                  all_ops());
  const Graph step = driver::run_pipeline(passes::train(model, {}).graph, {});
  const TaskList tasks = codegen::select(step, driver::cpu_options()).tasks;
  std::size_t padded = 0;
  for (const TaskList::Kernel& kernel : tasks.kernels) {
    std::vector<bool> is_read(kernel.nest.buffers.size(), false);
    nests::for_each_load(kernel.nest.body,
                         [&](const nests::Scalar& load) { is_read[load->id] = true; });
    for (std::size_t k = 0; k < is_read.size(); ++k) {
      const nests::NestBuffer& buffer = kernel.nest.buffers[k];
      padded += buffer.name.starts_with("p") ? 1 : 0;
      const bool is_operand = buffer.storage == nests::StorageClass::Operand;
      EXPECT_TRUE(is_read[k] || !is_operand) << buffer.name << " of " << to_string(kernel.nest);
    }
  }
  EXPECT_GT(padded, 0u);
}

}  // namespace
}  // namespace tenon
