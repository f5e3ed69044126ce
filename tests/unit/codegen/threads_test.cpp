#include "driver/compile.h"
#include "host/compiled.h"
#include "models/inputs.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

namespace tenon::threads_test {
namespace {

// Whole networks give the same bits on any number of threads, also more than the machine has.
TEST(Threads, NetworksAreBitIdentical) {
  for (const char* spec : {"resnet18?size=64,classes=10", "mobilenet_v2?size=32,classes=10",
                           "squeezenet?size=64,classes=10", "unet256?size=64,width=16",
                           "mlp?batch=5,size=100,hidden=72"}) {
    SCOPED_TRACE(spec);
    const Graph graph = zoo::build(spec);
    const std::vector<Datum> inputs = models::random_inputs(graph, 11);
    const Program program = driver::compile_graph(graph);
    const std::vector<Datum> first = CompiledModel(program, 1).run(inputs);
    for (const int threads : {2, 3, 7}) {
      CompiledModel model(program, threads);
      // the distribution of work over threads varies between runs
      for (int run = 0; run < 3; ++run) {
        const std::vector<Datum> outputs = model.run(inputs);
        ASSERT_EQ(outputs.size(), first.size());
        for (std::size_t k = 0; k < first.size(); ++k) {
          EXPECT_TRUE(identical(outputs[k].tensor(), first[k].tensor())) << threads << " threads";
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::threads_test
