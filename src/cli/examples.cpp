#include "cli/examples.h"

#include <array>
#include <utility>

namespace tenon::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kExamples = {{
    {"demo", "tenon demo"},
    {"show", "tenon show zoo:resnet50 --nodes"},
    {"check", "tenon check model.onnx"},
    {"convert", "tenon convert zoo:mobilenet_v2 --to=onnx -o mobilenet.onnx"},
    {"run",
     "tenon run model.onnx --input=x:@cat.jpg --mean=123.675,116.28,103.53 "
     "--scale=0.0171,0.0175,0.0174 --output=@out.npz"},
    {"diff", "tenon diff model.onnx --targets=reference,cpu"},
    {"opt", "tenon opt model.onnx --passes=simplify,fuse --time-passes --print"},
    {"compile",
     "tenon compile model.onnx -o model.tnn        # or -o model.so: a shared object that needs "
     "nothing beside it"},
    {"bench", "tenon bench zoo:resnet50 --batch=4 --threads=2 --steps"},
    {"profile", "tenon profile zoo:resnet50 --report=report.html --trace=trace.json"},
    {"report", "tenon report before.json after.json -o changes.html"},
    {"train", "tenon train zoo:mlp?batch=N --optimizer=adamw,lr=1e-3 --epochs=2 -o trained.onnx"},
    {"tune", "tenon tune zoo:resnet50 --seconds=30"},
    {"explain", "tenon explain zoo:resnet50 stem"},
    {"plan", "tenon plan zoo:unet256 --budget=60%"},
    {"arena", "tenon arena buffers.csv --capacity=1048576"},
    {"ops", "tenon ops softmax"},
    {"passes", "tenon passes --target=cuda   # over graphs and loop nests, in order"},
    {"doctor", "tenon doctor"},
    {"conformance", "tenon conformance /usr/share/libonnx-testdata/data/node --filter=relu"},
    {"completions", "source <(tenon completions bash)"},
    {"quantize", "tenon quantize model.onnx -o model.int8.onnx"},
}};

}  // namespace

std::string_view example_of(std::string_view subcommand) {
  for (const auto& [name, example] : kExamples) {
    if (name == subcommand) return example;
  }
  return "";
}

}  // namespace tenon::cli
