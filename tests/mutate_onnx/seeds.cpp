#include "seeds.h"

#include "base/error.h"
#include "driver/conformance.h"
#include "frontends/onnx/export.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "testing/random_graph/random_graph.h"
#include "verify_passes/thin.h"
#include "zoo/zoo.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace tenon::testing {
namespace {

constexpr std::uintmax_t kMaxBytes = 64 << 10;
constexpr int kPooledGraphs = 60, kNodes = 5;

Seeds::Model random_model(testing::Random& random) {
  for (;;) {
    const testing::RandomGraphOptions options{random.next() >> 16, kNodes, false};
    try {
      return {concat("random:", options.seed, "?nodes=", kNodes),
              frontends::onnx::export_onnx(testing::random_graph(options))};
    } catch (const Error&) {
      // ONNX cannot express this one; the next may be expressible.
    }
  }
}

}  // namespace

Seeds::Seeds(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    for (const driver::ConformanceCase& found : driver::find_conformance_cases(folder)) {
      const std::filesystem::path path = found.model;
      if (std::filesystem::file_size(path) > kMaxBytes) continue;
      std::ifstream file(path, std::ios::binary);
      in_folders.push_back({found.name, {std::istreambuf_iterator<char>(file), {}}});
    }
  }
  for (const char* spec : {"mlp?batch=2,size=12,hidden=8", "lstm?seq=3,size=4,hidden=4"}) {
    networks.push_back({concat("zoo:", spec), frontends::onnx::export_onnx(zoo::build(spec))});
  }
  struct Thin {
    const char* spec;
    std::int64_t factor;
  };
  for (const Thin& thin :
       {Thin{"resnet18?size=32,classes=10", 32}, Thin{"mobilenet_v2?size=32,classes=10", 16},
        Thin{"bert_base?seq=4", 64}, Thin{"gpt2?seq=4", 64}}) {
    networks.push_back({concat("zoo:", thin.spec),
                        frontends::onnx::export_onnx(thinned(zoo::build(thin.spec), thin.factor))});
  }
  onnx_schema::ModelProto model;
  for (const auto* list : {&in_folders, &networks}) {
    for (const Model& seed : *list) {
      if (model.ParseFromString(seed.bytes)) pool.add(model.graph());
    }
  }
  testing::Random random(1);
  for (int k = 0; k < kPooledGraphs; ++k) {
    if (model.ParseFromString(random_model(random).bytes)) pool.add(model.graph());
  }
}

Seeds::Model Seeds::pick(testing::Random& random) const {
  if (random.chance(4)) return random.pick(networks);
  if (!in_folders.empty() && random.chance(60)) return random.pick(in_folders);
  return random_model(random);
}

}  // namespace tenon::testing
