// Chainer's training graphs: results of the imported graphs, and export of any graph.
#include "base/error.h"
#include "documents/chainer/importer.h"
#include "documents/chainer/writer.h"
#include "documents/document.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "unit/documents/mutation.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace tenon::documents::chainer::chainer_graph_test {
namespace {

Tables fixture(const std::string& name) {
  return parse_tables(read_fixture(name + "_chainer.graph.txt"), name);
}

std::map<std::string, Tensor> values_of(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::map<std::string, Tensor> values;
  std::vector<Datum> data;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    data.emplace_back(inputs[k]);
    values[graph.value(graph.inputs()[k]).name] = inputs[k];
  }
  reference::EvaluateOptions options;
  options.on_value = [&](ValueId id, const Datum& datum) {
    if (datum.is_tensor()) values[graph.value(id).name] = datum.tensor();
  };
  reference::evaluate(graph, std::move(data), options);
  return values;
}

Tensor some_tensor(const Graph& graph, std::size_t input, std::uint64_t seed) {
  const TensorType& type = graph.value(graph.inputs()[input]).type.tensor();
  return Constant::normal(type.dtype, constants(type.dims), seed, 0, 1).materialise();
}

const Tensor& weight(std::map<std::string, Tensor>& values, const std::string& path) {
  return values.at(path);
}

TEST(ChainerRun, MlpMatchesDirectEvaluation) {
  const Graph graph = import_tables(fixture("mlp"), "mlp");
  std::map<std::string, Tensor> values =
      values_of(graph, {some_tensor(graph, 0, 1), some_tensor(graph, 1, 2)});
  const auto linear = [&](const std::vector<double>& x, std::int64_t rows,
                          const std::string& path) {
    const Tensor &w = weight(values, path + "/W"), &b = weight(values, path + "/b");
    const std::int64_t outs = w.shape()[0], ins = w.shape()[1];
    std::vector<double> y;
    for (std::int64_t n = 0; n < rows; ++n) {
      for (std::int64_t o = 0; o < outs; ++o) {
        double sum = b.real_at(o);
        for (std::int64_t i = 0; i < ins; ++i)
          sum += x[static_cast<std::size_t>(n * ins + i)] * w.real_at(o * ins + i);
        y.push_back(sum);
      }
    }
    return y;
  };
  std::vector<double> h = linear(values.at("input_0").reals(), 6, "/l1");
  for (double& each : h) each = 0.5 * std::tanh(each) * std::tanh(each);
  const std::vector<double> y = linear(h, 6, "/l2"), t = values.at("input_1").reals();
  double loss = 0;
  for (std::size_t k = 0; k < y.size(); ++k)
    loss += (y[k] - t[k]) * (y[k] - t[k]) / static_cast<double>(y.size());
  EXPECT_NEAR(values.at(graph.value(graph.outputs()[0]).name).real_at(0), loss, 1e-5);
}

// Plain reference for images [N, C, S, S] of the residual network.
struct Image {
  std::int64_t n, c, s;
  std::vector<double> data;
  double& at(std::int64_t b, std::int64_t k, std::int64_t y, std::int64_t x) {
    return data[static_cast<std::size_t>(((b * c + k) * s + y) * s + x)];
  }
};
Image image(std::int64_t n, std::int64_t c, std::int64_t s) {
  return {n, c, s, std::vector<double>(static_cast<std::size_t>(n * c * s * s))};
}

class PlainResidual {
 public:
  explicit PlainResidual(std::map<std::string, Tensor>& values) : values_(values) {}

  double loss() {
    Image x = image(4, 3, 20);
    x.data = values_.at("input_0").reals();
    x = max_pool(relu(norm(conv(x, "/conv1", 1, 1), "/bn1")));
    Image a = relu(norm(conv(x, "/res/a/conv1", 1, 1), "/res/a/bn1"));
    a = norm(conv(a, "/res/a/conv2", 1, 1), "/res/a/bn2");
    x = relu(sum(a, x));
    x = relu(sum(norm(conv(x, "/res/b/conv1", 2, 1), "/res/b/bn1"),
                 norm(conv(x, "/res/b/shortcut", 2, 0), "/res/b/bn2")));
    const Tensor &w = values_.at("/fc/W"), &b = values_.at("/fc/b"),
                 &labels = values_.at("input_1");
    double total = 0;
    for (std::int64_t n = 0; n < 4; ++n) {
      std::vector<double> scores;
      for (std::int64_t o = 0; o < 10; ++o) {
        double score = b.real_at(o);
        for (std::int64_t c = 0; c < 16; ++c) {
          double mean = 0;
          for (std::int64_t k = 0; k < 25; ++k) mean += x.at(n, c, k / 5, k % 5) / 25;
          score += mean * w.real_at(o * 16 + c);
        }
        scores.push_back(score);
      }
      double norm_of = 0;
      for (const double score : scores) norm_of += std::exp(score);
      total += (std::log(norm_of) - scores[static_cast<std::size_t>(labels.integer_at(n))]) / 4;
    }
    return total;
  }

 private:
  Image conv(Image x, const std::string& path, std::int64_t stride, std::int64_t pad) {
    const Tensor& w = values_.at(path + "/W");
    const std::int64_t outs = w.shape()[0], kernel = w.shape()[2];
    Image y = image(x.n, outs, (x.s + 2 * pad - kernel) / stride + 1);
    for (std::int64_t n = 0; n < x.n; ++n)
      for (std::int64_t o = 0; o < outs; ++o)
        for (std::int64_t i = 0; i < y.s; ++i)
          for (std::int64_t j = 0; j < y.s; ++j)
            for (std::int64_t c = 0; c < x.c; ++c)
              for (std::int64_t k = 0; k < kernel * kernel; ++k) {
                const std::int64_t row = i * stride + k / kernel - pad,
                                   column = j * stride + k % kernel - pad;
                if (row < 0 || row >= x.s || column < 0 || column >= x.s) continue;
                y.at(n, o, i, j) +=
                    x.at(n, c, row, column) * w.real_at((o * x.c + c) * kernel * kernel + k);
              }
    return y;
  }
  Image norm(Image x, const std::string& path) {
    const Tensor &gamma = values_.at(path + "/gamma"), &beta = values_.at(path + "/beta");
    const double count = static_cast<double>(x.n * x.s * x.s);
    for (std::int64_t c = 0; c < x.c; ++c) {
      double mean = 0, variance = 0;
      const auto each = [&](const auto& visit) {
        for (std::int64_t n = 0; n < x.n; ++n)
          for (std::int64_t k = 0; k < x.s * x.s; ++k) visit(x.at(n, c, k / x.s, k % x.s));
      };
      each([&](double v) { mean += v / count; });
      each([&](double v) { variance += (v - mean) * (v - mean) / count; });
      each([&](double& v) {
        v = (v - mean) / std::sqrt(variance + 2e-5) * gamma.real_at(c) + beta.real_at(c);
      });
    }
    return x;
  }
  static Image relu(Image x) {
    for (double& each : x.data) each = std::max(each, 0.0);
    return x;
  }
  static Image sum(Image a, const Image& b) {
    for (std::size_t k = 0; k < a.data.size(); ++k) a.data[k] += b.data[k];
    return a;
  }
  // Max-pooling 3 x 3, stride 2; the last window extends over the edge.
  static Image max_pool(Image x) {
    Image y = image(x.n, x.c, 10);
    for (std::int64_t n = 0; n < x.n; ++n)
      for (std::int64_t c = 0; c < x.c; ++c)
        for (std::int64_t i = 0; i < 10; ++i)
          for (std::int64_t j = 0; j < 10; ++j) {
            double best = -1e30;
            for (std::int64_t k = 0; k < 9; ++k) {
              const std::int64_t row = 2 * i + k / 3, column = 2 * j + k % 3;
              if (row < x.s && column < x.s) best = std::max(best, x.at(n, c, row, column));
            }
            y.at(n, c, i, j) = best;
          }
    return y;
  }

  std::map<std::string, Tensor>& values_;
};

TEST(ChainerRun, ResidualNetworkMatchesDirectEvaluation) {
  const Graph graph = import_tables(fixture("residual"), "residual");
  const std::vector<std::int64_t> classes{3, 0, 9, 5};
  std::map<std::string, Tensor> values =
      values_of(graph, {some_tensor(graph, 0, 4), Tensor::of(DType::I32, {4}, classes)});
  const double loss = values.at(graph.value(graph.outputs()[0]).name).real_at(0);
  EXPECT_NEAR(loss, PlainResidual(values).loss(), 1e-4);
}

// Returns every node with its attributes, types and operand subtrees, independent of the order of
// nodes. Weights are compared by type only, since the format omits their elements.
std::multiset<std::string> node_texts(const Graph& graph) {
  std::map<ValueId, std::size_t> hashes;
  const std::hash<std::string> hash;
  std::multiset<std::string> texts;
  for (std::size_t k = 0; k < graph.inputs().size(); ++k) {
    hashes[graph.inputs()[k]] = hash(concat("input ", k, " ", graph.value(graph.inputs()[k]).type));
  }
  for (const NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    if (const Constant* constant =
            node.results.empty() ? nullptr : graph.constant_of(node.results[0])) {
      const bool counts = constant->shape().empty() || !is_float(constant->dtype());
      hashes[node.results[0]] =
          hash(counts ? print(*constant) : concat("weight ", graph.value(node.results[0]).type));
      continue;
    }
    std::string text = concat(node.op->name, "(");
    for (const ValueId operand : node.operands)
      text += operand ? concat(hashes.at(operand), " ") : "- ";
    text += ")";
    for (const auto& [name, value] : node.attrs) text += concat(" ", name, "=", print(value));
    for (const Graph& body : node.bodies) text += print(body);
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      text += concat(" -> ", graph.value(node.results[k]).type);
      hashes[node.results[k]] = hash(concat(text, " ", k));
    }
    texts.insert(text);
  }
  for (std::size_t k = 0; k < graph.outputs().size(); ++k) {
    texts.insert(concat("output ", k, " ", hashes.at(graph.outputs()[k])));
  }
  return texts;
}

TEST(ChainerZoo, RoundTripsEveryNetwork) {
  for (const char* name :
       {"resnet18", "resnet50", "alexnet", "alexnet?form=torch", "vgg16", "mobilenet_v2", "unet572",
        "unet572?loss=1,dropout=1,batch=8", "unet256", "squeezenet", "densenet121", "bert_base",
        "gpt2", "vit_b16", "mlp", "mlp?batch=7", "lstm"}) {
    const Graph graph = zoo::build(name);
    const auto document = documents::find_document_format("chainer")->from_graph(graph);
    const std::string text = document->text("");
    const auto again = documents::find_document_format("chainer")->read(text, name);
    EXPECT_EQ(again->text(""), text) << name;
    EXPECT_EQ(node_texts(again->graph()), node_texts(graph)) << name;
    EXPECT_TRUE(again->check().mismatches().empty()) << name;
  }
}

TEST(ChainerZoo, ListsValuesWithoutSize) {
  const std::pair<const char*, const char*> cases[] = {
      {"mlp?batch=N", "has no size"},
  };
  for (const auto& [name, part] : cases) {
    try {
      tables_of(zoo::build(name));
      ADD_FAILURE() << name << " was written";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

// The zoo's U-Net is the network of the file: the same functions over the same sizes.
TEST(ChainerZoo, UNetMatchesTheFile) {
  const auto summary = [](const Tables& tables) {
    std::multiset<std::string> lines;
    for (const Function& function : tables.forward) {
      std::string line = function.name;
      for (const Input& input : function.inputs)
        line += concat(" ", tables.variables[input.variable].bytes);
      for (const std::size_t output : function.outputs)
        line += concat(" -> ", tables.variables[output].bytes);
      for (const char* name : {"rank", "sy", "sx", "kh", "kw", "outh", "outw", "axis", "cover_all",
                               "_input_indexes_to_retain", "_output_indexes_to_retain"}) {
        if (const ChainerAttribute* found = function.find(name)) line += print_attributes({*found});
      }
      lines.insert(line);
    }
    return lines;
  };
  // Dropout in training has its mask as a second result.
  EXPECT_EQ(summary(tables_of(import_tables(fixture("unet"), "unet"))), summary(fixture("unet")));
  std::multiset<std::string> ours = summary(tables_of(zoo::build("unet572?loss=1,batch=8")));
  std::multiset<std::string> names_of_ours, names_of_file;
  for (const std::string& line : ours) names_of_ours.insert(line.substr(0, line.find('{')));
  for (const std::string& line : summary(fixture("unet"))) {
    if (line.rfind("Dropout", 0) != 0) names_of_file.insert(line.substr(0, line.find('{')));
  }
  EXPECT_EQ(names_of_ours, names_of_file);
}

// A file that is imported and exported has the same functions and attributes.
TEST(ChainerZoo, FixturesRoundTripThroughTheGraph) {
  for (const char* name : {"unet", "residual"}) {
    const Tables tables = fixture(name), again = tables_of(import_tables(tables, name));
    std::multiset<std::string> before, after;
    for (const Function& function : tables.forward) {
      before.insert(concat(function.name, " ", print_attributes(function.attributes)));
    }
    for (const Function& function : again.forward) {
      after.insert(concat(function.name, " ", print_attributes(function.attributes)));
    }
    EXPECT_EQ(after, before) << name;
    EXPECT_EQ(again.variables.size(), tables.variables.size()) << name;
  }
}

Retained retained_in(const std::string& text, const std::string& op) {
  const Graph graph = parse_graph(text, all_ops());
  for (const NodeId id : graph.nodes_in_order()) {
    if (graph.op_name(id) == op)
      return retained_by_gradient(documents::parse_native(documents::native_node(graph, id).text));
  }
  throw Error("no such node");
}

// The values that the gradient rules read.
TEST(ChainerRetained, DerivedFromGradientRules) {
  const auto is = [](std::vector<std::int64_t> inputs, std::vector<std::int64_t> outputs) {
    return Retained{std::move(inputs), std::move(outputs)};
  };
  EXPECT_EQ(retained_in("graph (x: f32[2], y: f32[2]) { z = mul(x, y) return z }", "mul"),
            is({0, 1}, {}));
  EXPECT_EQ(retained_in("graph (x: f32[2], y: f32[2]) { z = add(x, y) return z }", "add"),
            is({}, {}));
  EXPECT_EQ(retained_in("graph (x: f32[2]) { z = exp(x) return z }", "exp"), is({}, {0}));
  EXPECT_EQ(retained_in("graph (x: f32[2]) { z = log(x) return z }", "log"), is({0}, {}));
  EXPECT_EQ(retained_in("graph (x: f32[2, 3]) { z = transpose(x) return z }", "transpose"),
            is({}, {}));
  EXPECT_EQ(
      retained_in("graph (x: f32[2, 3], w: f32[3, 4]) { z = matmul(x, w) return z }", "matmul"),
      is({0, 1}, {}));
  EXPECT_EQ(retained_in("graph (x: f32[2, 3], i: i64[5]) { z = gather(x, i) return z }", "gather"),
            is({1}, {}));
}

// The gradient with respect to running statistics reads types of values while it adds others.
TEST(ChainerWrite, BatchNormTrainingWithAllResults) {
  const Graph graph = parse_graph(
      "graph m (x: f32[2, 4, 4], s: f32[4], b: f32[4], v: f32[4], m: f32[4]) {\n"
      "  y, mean, variance = batch_norm_training(x, s, b, m, v)\n"
      "  return y\n"
      "}\n",
      all_ops());
  EXPECT_FALSE(tables_of(graph).forward.empty());
}

}  // namespace
}  // namespace tenon::documents::chainer::chainer_graph_test
