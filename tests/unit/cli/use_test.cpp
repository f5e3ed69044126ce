#include "base/error.h"
#include "cli/out.h"
#include "frontends/numpy/npz.h"
#include "ir/text.h"
#include "models/image_input.h"
#include "models/model.h"
#include "models/rebatch.h"
#include "ops/definition/registry.h"
#include "unit/cli/called.h"
#include "unit/frontends/onnx_model.h"
#include "unit/needs_documents.h"
#include "zoo/zoo.h"

#include <fstream>

namespace tenon::cli::use_test {
namespace {

using Use = WithFolder;

TEST_F(Use, ShowsAndChecksPrograms) {
  const std::string program = file("mlp.tnn");
  ASSERT_EQ(call({"compile", "zoo:mlp", "-o", program, "--untuned"}).code, 0);
  const Called shown = call({"show", program});
  EXPECT_EQ(shown.code, 0);
  EXPECT_TRUE(has(shown.out, "3 steps of 3 kernels") && has(shown.out, "logits") &&
              has(shown.out, "code bytes"))
      << shown.out;
  EXPECT_TRUE(has(call({"check", program}).out, "0 problems"));
  // One byte of the constants, which begin a page near the end.
  std::fstream content(program, std::ios::in | std::ios::out | std::ios::binary);
  content.seekp(-100, std::ios::end);
  content.put('x');
  content.close();
  const Called altered = call({"check", program});
  EXPECT_EQ(altered.code, 3);
  EXPECT_TRUE(has(altered.out, "altered constants")) << altered.out;
}

TEST_F(Use, CheckWarnsOfUnsortedNodes) {
  namespace models = frontends::onnx::testing_models;
  models::ModelProto model = models::new_model();
  models::add_input(*model.mutable_graph(), "x", {"2"});
  models::add_node(*model.mutable_graph(), "Relu", {"later"}, {"y"}, "first");
  models::add_node(*model.mutable_graph(), "Abs", {"x"}, {"later"}, "second");
  models::add_output(*model.mutable_graph(), "y");
  const std::string path = file("unsorted.onnx");
  std::ofstream(path, std::ios::binary) << model.SerializeAsString();
  const std::string warning =
      "the nodes of graph 'g' are not sorted topologically: node 'first' (Relu) reads 'later' "
      "before it is made";
  const Called text = call({"check", path});
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.out, "warning: " + warning + "\n" + path + ": 2 nodes, 0 problems\n");
  EXPECT_TRUE(has(call({"check", path, "--json"}).out, "\"warnings\": [\n    \"" + warning));
}

TEST_F(Use, RunsAndShowsSharedObjects) {
  const std::string object = file("mlp.so");
  ASSERT_EQ(call({"compile", "zoo:mlp", "-o", object, "--untuned", "--constants=mlp.bin"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(file("mlp.bin")));
  EXPECT_TRUE(has(call({"show", object}).out, "3 steps"));
  EXPECT_EQ(call({"run", object}).code, 0);
  EXPECT_EQ(call({"compile", "zoo:mlp", "-o", file("a.tnn"), "--constants=b.bin"}).code, 2);
}

TEST_F(Use, OutputsIntermediateValues) {
  const Called named = call({"run", "zoo:mlp", "--output=relu1", "--output=@" + file("out.npz")});
  EXPECT_EQ(named.code, 0) << named.error;
  const auto arrays = frontends::numpy::read_npz_file(file("out.npz"));
  EXPECT_EQ(arrays.at("relu1").shape(), (Shape{1, 512}));
  EXPECT_EQ(arrays.at("logits").shape(), (Shape{1, 10}));
  EXPECT_TRUE(has(call({"run", "zoo:mlp", "--output=all"}).out, "fc2.matmul"));
  const Called wrong = call({"run", "zoo:mlp", "--output=relu9"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has(wrong.error, "no value is called 'relu9'")) << wrong.error;
}

TEST_F(Use, RunsAnotherBatchSize) {
  EXPECT_TRUE(has(call({"run", "zoo:mlp", "--batch=5"}).out, "f32[5, 10]"));
  EXPECT_TRUE(has(call({"run", "zoo:mlp?batch=N", "--batch=5"}).out, "f32[5, 10]"));
  EXPECT_TRUE(has(call({"run", "zoo:mlp", "--shapes=x:5x784"}).out, "f32[5, 10]"));
  EXPECT_TRUE(has(call({"run", "zoo:mlp", "--shapes=x:5x783"}).error, "matmul"));
  EXPECT_TRUE(has(call({"compile", "zoo:mlp", "--batch=5", "--print=program"}).out, "[5, 784]"));
  EXPECT_EQ(call({"plan", "zoo:mlp", "--batch=5"}).code, 0);
  EXPECT_TRUE(has(call({"explain", "zoo:mlp", "relu1", "--batch=5"}).error, "--batch"));
  ASSERT_EQ(call({"convert", "zoo:mlp", "--batch=3", "--to=onnx", "-o", file("m.onnx")}).code, 0);
  EXPECT_TRUE(has(call({"show", file("m.onnx")}).out, "f32[3, 784]"));
}

TEST_F(Use, RefusesDataForTimeMajorModels) {
  std::ofstream(file("scan.tenon")) << R"(graph (x: f32[6, 1, 3]) {
  zero = constant f32[1, 3] splat 0
  last, all = scan(zero, x) {state_count = 1} body = graph step (h: f32[1, 3], e: f32[1, 3]) {
    next = add(h, e)
    y = tanh(next)
    return next, y
  }
  return all
}
)";
  std::filesystem::create_directories(file("samples"));
  frontends::numpy::write_npz_file({{"x", Tensor(DType::F32, {6, 4, 3})}}, file("samples/x.npz"));
  const Called made =
      call({"run", file("scan.tenon"), "--data=@" + file("samples"), "--output=@" + file("made")});
  EXPECT_EQ(made.code, 4);
  EXPECT_TRUE(has(made.error, "samples of a recurrent model lie along another axis than the first"))
      << made.error;
}

// Inputs with extents other than the model's: types are inferred again, and the other inputs get
// the same batch.
TEST(Rebatch, InputShapesMayDifferFromTheModel) {
  const Graph graph = parse_graph(R"(graph (x: f32[1, 2, 8, 8], scale: f32[1, 1, 1, 1], k: f32[3]) {
    p = max_pool(x) {kernel_shape = [2, 2], strides = [2, 2]}
    y = mul(p, scale)
    return y, k
  })",
                                  all_ops(), "test");
  const Graph other = models::reshaped(graph, {{"x", {4, 2, 16, 8}}});
  const auto type = [](const Graph& of, const char* name) {
    return to_string(of.value(of.find(name)).type);
  };
  EXPECT_EQ(type(other, "y"), "f32[4, 2, 8, 4]");
  EXPECT_EQ(type(other, "scale"), "f32[4, 1, 1, 1]");
  EXPECT_EQ(type(other, "k"), "f32[3]");
  EXPECT_EQ(type(models::reshaped(graph, {{"x", {1, 2, 8, 8}}}), "y"), "f32[1, 2, 4, 4]");
  EXPECT_EQ(type(models::reshaped(graph, {{"x", {4, 2}}}), "y"), "f32[1, 2, 4, 4]")
      << "left to who reads inputs";
}

TEST(Rebatch, ReplacesSymbolsByExtents) {
  const Graph graph = parse_graph(R"(graph (x: f32[N, M], b: f32[M]) {
  y = add(x, b)
  return y
}
)",
                                  all_ops(), "test");
  const auto type = [](const Graph& in) { return to_string(in.value(in.outputs().front()).type); };
  EXPECT_EQ(type(models::with_fixed_shapes(graph, 0, {{"x", {2, 3}}})), "f32[2, 3]");
  EXPECT_EQ(type(models::with_fixed_shapes(graph, 4, {})), "f32[4, M]");
  EXPECT_EQ(type(models::with_fixed_shapes(models::with_fixed_shapes(graph, 0, {{"x", {2, 3}}}), 0,
                                           {{"x", {5, 3}}})),
            "f32[5, 3]");
  EXPECT_THROW(models::with_fixed_shapes(graph, 0, {{"z", {2, 3}}}), Error);
  EXPECT_THROW(models::with_fixed_shapes(graph, 0, {{"x", {2}}}), Error);
}

TEST(Rebatch, AdaptsReshapesAndRefusesFixedOnes) {
  const auto parsed = [](const char* text) { return parse_graph(text, all_ops(), "test"); };
  const Graph follows = models::rebatched(parsed(R"(graph (x: f32[1, 2, 3]) {
  y = reshape(x) {shape = [1, 6]}
  return y
}
)"),
                                          4);
  EXPECT_EQ(to_string(follows.value(follows.outputs().front()).type), "f32[4, 6]");
  EXPECT_THROW(models::rebatched(parsed(R"(graph (x: f32[2, 3]) {
  flat = reshape(x) {shape = [6]}
  weights = constant f32[6] [1, 2, 3, 4, 5, 6]
  y = mul(flat, weights)
  return y
}
)"),
                                 4),
               Error);
}

// Type of the first output after a change of the batch.
std::string rebatched_type(const char* text, std::int64_t batch) {
  const Graph graph = models::rebatched(parse_graph(text, all_ops(), "test"), batch);
  return to_string(graph.value(graph.outputs().front()).type);
}

TEST(Rebatch, ExpandsClassTokens) {
  EXPECT_EQ(rebatched_type(R"(graph (x: f32[1, 4, 3]) {
  token = constant f32[1, 1, 3] [5, 6, 7]
  y = concat(token, x) {axis = 1}
  return y
}
)",
                           8),
            "f32[8, 5, 3]");
  EXPECT_EQ(rebatched_type(R"(graph (x: f32[2, 4, 3]) {
  token = constant f32[2, 1, 3] [5, 6, 7, 5, 6, 7]
  y = concat(token, x) {axis = 1}
  return y
}
)",
                           8),
            "f32[8, 5, 3]");
  EXPECT_EQ(rebatched_type(R"(graph (x: f32[2, 4, 3]) {
  token = constant f32[1, 1, 3] [5, 6, 7]
  tokens = expand(token) {shape = [2, 1, 3]}
  y = concat(tokens, x) {axis = 1}
  return y
}
)",
                           8),
            "f32[8, 5, 3]");
  EXPECT_THROW(rebatched_type(R"(graph (x: f32[2, 4, 3]) {
  token = constant f32[2, 1, 3] [5, 6, 7, 1, 2, 3]
  y = concat(token, x) {axis = 1}
  return y
}
)",
                              8),
               Error);
}

TEST(Rebatch, KeepsTheBatchAmongTheFactorsOfAReshape) {
  const auto type = [](const std::string& from, const std::string& shape) {
    return rebatched_type(
        ("graph (x: f32" + from + ") {\n  y = reshape(x) {shape = " + shape + "}\n  return y\n}\n")
            .c_str(),
        5);
  };
  EXPECT_EQ(type("[1, 6, 4]", "[1, -1]"), "f32[5, 24]");
  EXPECT_EQ(type("[1, 6, 4]", "[6, 4]"), "f32[30, 4]");
  EXPECT_EQ(type("[1, 6, 4]", "[0, 2, 3, 4]"), "f32[5, 2, 3, 4]");
  EXPECT_EQ(type("[1, 6, 4]", "[1, 1, 6, 4]"), "f32[5, 1, 6, 4]");
  EXPECT_EQ(type("[2, 6, 4]", "[12, 4]"), "f32[30, 4]");
  EXPECT_EQ(type("[2, 6, 4]", "[1, 12, 4]"), "f32[1, 30, 4]");
}

TEST(Rebatch, FollowsMergedHeadsOfSequenceFirstAttention) {
  EXPECT_EQ(rebatched_type(R"(graph (x: f32[1, 7, 8]) {
  sequence = transpose(x) {perm = [1, 0, 2]}
  heads = reshape(sequence) {shape = [7, 4, 2]}
  rows = reshape(heads) {shape = [7, 8]}
  weight = constant f32[8, 8] splat 1
  z = matmul(rows, weight)
  apart = reshape(z) {shape = [7, 1, 8]}
  y = transpose(apart) {perm = [1, 0, 2]}
  return y
}
)",
                           3),
            "f32[3, 7, 8]");
}

TEST(Rebatch, FollowsExpandsAndResizes) {
  EXPECT_EQ(rebatched_type(R"(graph (x: f32[2, 1, 4]) {
  y = expand(x) {shape = [2, 3, 4]}
  return y
}
)",
                           5),
            "f32[5, 3, 4]");
  EXPECT_EQ(rebatched_type(R"(graph (x: f32[1, 1, 4]) {
  y = resize(x) {sizes = [1, 1, 8]}
  return y
}
)",
                           5),
            "f32[5, 1, 8]");
}

TEST(Rebatch, FindsTheBatchOfRecurrentLayersThatAreTimeMajor) {
  const Graph graph = parse_graph(R"(graph (x: f32[6, 1, 3]) {
  zero = constant f32[1, 3] splat 0
  last, all = scan(zero, x) {state_count = 1} body = graph step (h: f32[1, 3], e: f32[1, 3]) {
    next = add(h, e)
    y = tanh(next)
    return next, y
  }
  return all
}
)",
                                  all_ops(), "test");
  EXPECT_EQ(to_string(*models::batch_of(graph)), "1");
  const Graph made = models::rebatched(graph, 4);
  EXPECT_EQ(to_string(made.value(made.inputs().front()).type), "f32[6, 4, 3]");
  EXPECT_EQ(to_string(made.value(made.outputs().front()).type), "f32[6, 4, 3]");
}

TEST(Rebatch, ZooNetworksTakeTheTypesOfNetworksMadeForTheBatch) {
  for (const zoo::Network& network : zoo::networks()) {
    SCOPED_TRACE(network.name);
    const Graph changed = models::rebatched(models::load_model("zoo:" + network.name), 3);
    const Graph made = models::load_model("zoo:" + network.name + "?batch=3");
    ASSERT_EQ(changed.outputs().size(), made.outputs().size());
    for (std::size_t k = 0; k < made.outputs().size(); ++k) {
      EXPECT_EQ(changed.value(changed.outputs()[k]).type, made.value(made.outputs()[k]).type);
    }
  }
}

TEST_F(Use, RebatchesClassTokensInEverySubcommand) {
  std::ofstream(file("token.tenon")) << R"(graph vit (x: f32[1, 4, 3]) {
  token = constant f32[1, 1, 3] [5, 6, 7]
  joined = concat(token, x) {axis = 1}
  weight = constant f32[3, 2] normal(seed = 1, mean = 0.0, deviation = 1.0)
  scores = matmul(joined, weight)
  y = reduce_mean(scores) {axes = [1], keep_axes = false}
  return y
}
)";
  const std::string model = file("token.tenon");
  const auto succeeds = [&](std::vector<std::string> words) {
    const Called called = call(words);
    EXPECT_EQ(called.code, 0) << words.front() << ": " << called.error;
    return called.out;
  };
  EXPECT_TRUE(has(succeeds({"run", model, "--batch=8"}), "f32[8, 2]"));
  succeeds({"convert", model, "--batch=8", "--to=onnx", "-o", file("eight.onnx")});
  succeeds({"compile", model, "--batch=8", "--untuned", "-o", file("eight.tnn")});
  succeeds({"plan", model, "--batch=8"});
  succeeds({"plan", "zoo:mlp", "--batch=8", "--train=sgd"});
  succeeds({"bench", model, "--batch=8", "--iterations=1", "--untuned"});
  succeeds({"profile", model, "--batch=8", "--iterations=1", "--untuned", "--no-counters"});
  succeeds({"train", model, "--steps=1", "--optimizer=sgd"});
}

TEST_F(Use, PlanComparesTheMethodsThatSupportTheModel) {
  const Called compared =
      call({"plan", "zoo:resnet18?size=32", "--train", "--compare", "--budget=90%"});
  EXPECT_EQ(compared.code, 0) << compared.error;
  EXPECT_TRUE(has(compared.out, "search") && has(compared.out, "not possible") &&
              has(compared.out, "exact: the graph has too many lower sets for all of them"))
      << compared.out;
}

TEST_F(Use, PlansRecordedRuns) {
  NEEDS_DOCUMENTS();
  const Called recorded =
      call({"plan", "tests/fixtures/unet_chainer.graph.txt", "--batch=5", "--budget=90%"});
  EXPECT_TRUE(has(recorded.error, "a recorded run has the batch that it was recorded with"));
  const Called frontier =
      call({"plan", "tests/fixtures/unet_chainer.graph.txt", "--frontier", "--steps=200"});
  EXPECT_EQ(frontier.code, 0);
  EXPECT_TRUE(has(frontier.error, "budget 90%: ") && has(frontier.error, " % more time"))
      << frontier.error;
}

TEST_F(Use, ReadsImagesAsInputs) {
  // Two pixels: red and grey.
  std::ofstream(file("two.ppm"), std::ios::binary) << "P6 2 1 255\n"
                                                   << std::string("\xff\x00\x00\x64\x64\x64", 6);
  const Tensor planes =
      models::read_image_input(file("two.ppm"), DType::F32, {1, 3, 1, 2}, {{100}, {0.5}});
  EXPECT_EQ(planes.reals(), (std::vector<double>{77.5, 0, -50, 0, -50, 0}));
  const Tensor pixels = models::read_image_input(file("two.ppm"), DType::U8, {1, 2, 3});
  EXPECT_EQ(pixels.reals(), (std::vector<double>{255, 0, 0, 100, 100, 100}));
  const Tensor wide = models::read_image_input(file("two.ppm"), DType::F32, {1, 4, 3});
  EXPECT_EQ(wide.real_at(0), 255);
  EXPECT_EQ(wide.real_at(3), 0.75 * 255 + 0.25 * 100);
  EXPECT_THROW(models::read_image_input(file("two.ppm"), DType::F32, {7}), Error);
  std::ofstream(file("model.tenon"))
      << "graph (x: f32[1, 3, 1, 2]) {\n  y = relu(x)\n  return y\n}\n";
  const Called run = call(
      {"run", file("model.tenon"), "--input=x:@" + file("two.ppm"), "--mean=0,0,10", "--scale=2"});
  EXPECT_EQ(run.code, 0) << run.error;
  EXPECT_TRUE(has(run.out, "510")) << run.out;
  for (const char* name : {"a.jpg", "a.PNG", "a.webp", "a.jp2", "a.gif"})
    EXPECT_TRUE(models::is_image_file(name)) << name;
  EXPECT_FALSE(models::is_image_file("a.npy"));
  // A file with an image extension in an unsupported format is reported as such, and not as a
  // malformed array.
  std::ofstream(file("moving.gif"), std::ios::binary) << "GIF89a" << std::string(20, '\0');
  const Called gif = call({"run", file("model.tenon"), "--input=x:@" + file("moving.gif")});
  EXPECT_EQ(gif.code, 4) << gif.error;
  EXPECT_TRUE(has(gif.error, "moving.gif")) << gif.error;
}

TEST_F(Use, ConvertsToHalfPrecision) {
  ASSERT_EQ(
      call({"convert", "zoo:mlp", "--precision=fp16", "--to=onnx", "-o", file("h.onnx")}).code, 0);
  EXPECT_TRUE(has(call({"opt", file("h.onnx")}).out, "f16[784, 512]"));
  EXPECT_EQ(call({"convert", "zoo:mlp", "--precision=f17", "--to=onnx", "-o", file("h.onnx")}).code,
            2);
}

TEST_F(Use, OptOmitsWeightsByDefault) {
  ASSERT_EQ(call({"convert", "zoo:mlp", "--to=onnx", "-o", file("m.onnx")}).code, 0);
  const std::string shown = call({"opt", file("m.onnx")}).out;
  EXPECT_TRUE(has(shown, "constant f32[784, 512] …") && has(shown, "--weights prints them"))
      << shown.substr(0, 500);
  EXPECT_LT(shown.size(), 10000);
  EXPECT_GT(call({"opt", file("m.onnx"), "--weights"}).out.size(), 1000000);
}

TEST(Help, HasDefaultsAndAnExample) {
  const std::string text = call({"help", "run"}).out;
  EXPECT_TRUE(has(text, "Example: tenon run")) << text;
  EXPECT_TRUE(has(text, "--rtol FLOAT=0.001") || has(text, "[0.001]")) << text;
  EXPECT_FALSE(has(text, "=[]")) << text;
}

TEST(Completions, NameSubcommandsAndOptions) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Called made = call({"completions", shell});
    EXPECT_EQ(made.code, 0);
    EXPECT_TRUE(has(made.out, "conformance") && has(made.out, "time-passes")) << made.out;
  }
  EXPECT_EQ(call({"completions", "csh"}).code, 2);
}

TEST(KeptOutput, CapturesOutputOfOneThread) {
  KeptOutput outer;
  out() << "a";
  {
    KeptOutput inner;
    out() << "b";
    err() << "c";
    EXPECT_EQ(inner.out(), "b");
    EXPECT_EQ(inner.err(), "c");
  }
  EXPECT_EQ(outer.out(), "a");
}

}  // namespace
}  // namespace tenon::cli::use_test
