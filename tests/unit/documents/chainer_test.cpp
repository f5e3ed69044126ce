// Text of Chainer's training graphs: parsing to tables, printing, and refusals.
#include "base/error.h"
#include "base/text.h"
#include "documents/chainer/functions.h"
#include "documents/chainer/tables.h"
#include "documents/chainer/training_graph.h"
#include "documents/document.h"
#include "unit/documents/mutation.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <random>

namespace tenon::documents::chainer::chainer_test {
namespace {

const char* const kFixtures[] = {"unet_chainer.graph.txt", "residual_chainer.graph.txt",
                                 "mlp_chainer.graph.txt"};

std::string message_of(const std::string& text) {
  return error_text([&] { parse_tables(text, "file"); });
}

TEST(ChainerText, FixturesRoundTripByteForByte) {
  for (const char* name : kFixtures) {
    const std::string text = read_fixture(name);
    EXPECT_EQ(print_tables(parse_tables(text, name)), text) << name;
  }
}

TEST(ChainerText, RecognisesOnlyItsFormat) {
  const documents::DocumentFormat* format = documents::find_document_format("chainer");
  ASSERT_NE(format, nullptr);
  for (const char* name : kFixtures) EXPECT_TRUE(format->recognises(read_fixture(name))) << name;
  for (const char* name : {"aitemplate_conv_add.graph.txt", "megengine_resnet50.profile.json",
                           "resnet50_v1.before.relay", "tensorscope_alexnet.nodes.txt"}) {
    EXPECT_FALSE(format->recognises(read_fixture(name))) << name;
  }
  for (const char* text : {"", "3 4", "3 4\n", "3 4\nx", "3 4\n1 2\n", "3 four\n0 4 _\n",
                           "graph (x: f32[2]) {\n", "1 2 3\n4 5 6\n"}) {
    EXPECT_FALSE(format->recognises(text)) << text;
  }
}

TEST(ChainerText, TablesOfAFixture) {
  const Tables tables = parse_tables(read_fixture("unet_chainer.graph.txt"), "unet");
  ASSERT_EQ(tables.variables.size(), 108u);
  ASSERT_EQ(tables.forward.size(), 60u);
  ASSERT_EQ(tables.backward.size(), 60u);
  EXPECT_EQ(tables.variables[6].bytes, 1179648);
  EXPECT_EQ(tables.variables[6].name, "/conv_u1b_c/W");
  EXPECT_TRUE(tables.variables[53].is_input());
  EXPECT_TRUE(tables.variables[0].is_intermediate());
  EXPECT_TRUE(tables.variables[6].is_parameter());
  const Function& relu = tables.forward[0];
  EXPECT_EQ(relu.name, "ReLU");
  EXPECT_EQ(relu.inputs[0].variable, 8u);
  EXPECT_EQ(relu.outputs[0], 18u);
  EXPECT_EQ(std::get<std::int64_t>(relu.find("rank")->value.value), 18);
  EXPECT_EQ(place_of_attribute(relu, "rank"), "line 115, column 98");
  const Function& back = tables.backward[0];
  ASSERT_EQ(back.inputs.size(), 2u);
  EXPECT_EQ(back.inputs[0].tag, Tag::Gradient);
  EXPECT_EQ(back.inputs[1].tag, Tag::Output);
}

// The line of attributes as Python's json.dumps writes every kind of value.
TEST(ChainerText, AttributesPrintAsPythonDoes) {
  for (const char* line :
       {"{}", R"({"a": null, "b": true, "c": false, "d": -3, "e": "x"})",
        R"({"a": 0.5, "b": 1.0, "c": 2e-05, "d": 0.0001, "e": 1e+16, "f": 1234567890123456.0})",
        R"({"a": -0.0, "b": 1e-07, "c": 1.5e+300, "d": NaN, "e": Infinity, "f": -Infinity})",
        R"({"a": [], "b": [1, [2, null]], "c": {}, "d": {"x": {"y": [true]}}})",
        R"({"a\"b": "\\ \n\t\r\b\f \u0001 \u007f \u00e9 \u20ac \ud83d\ude00"})",
        R"({"i": 9223372036854775807, "j": -9223372036854775808})"}) {
    const std::string text = line;
    EXPECT_EQ(print_attributes(parse_attributes(text, "line", 0, text.size())), text);
  }
  const std::string loose = "{\"a\" :1 ,\t\"b\":[1,2]}";
  EXPECT_EQ(print_attributes(parse_attributes(loose, "line", 0, loose.size())),
            "{\"a\": 1, \"b\": [1, 2]}");
}

TEST(ChainerText, RefusesBadAttributes) {
  const std::string deep = "{\"a\": " + std::string(200, '[') + std::string(200, ']') + "}";
  const std::pair<std::string, const char*> cases[] = {
      {"", "need '{'"},
      {"{", "double quotes"},
      {"{\"a\"}", "need ':'"},
      {"{\"a\": }", "no value"},
      {"{\"a\": 1", "need '}'"},
      {"{\"a\": 1} x", "one JSON object"},
      {"{\"a\": 1, \"a\": 2}", "comes twice"},
      {"{\"o\": {\"a\": 1, \"a\": 2}}", "comes twice"},
      {"{\"a\": 99999999999999999999}", "out of range"},
      {"{\"a\": 1e999}", "not a number"},
      {"{\"a\": \"x}", "no end"},
      {"{\"a\": \"\\q\"}", "no escape"},
      {"{\"a\": \"\\ud800\"}", "surrogate"},
      {"{\"a\": \"\\u12\"}", "no escape"},
      {"{\"a\": \"\xc3\xa9\"}", "not ASCII"},
      {deep, "nested too deeply"},
  };
  for (const auto& [text, part] : cases) {
    try {
      parse_attributes(text, "line", 0, text.size());
      ADD_FAILURE() << text << " was read";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_NE(error.place().find("column"), std::string::npos) << error.what();
    }
  }
}

// A network of one function: y = relu(x).
std::string one_function(std::string header, std::string variables, std::string forward,
                         std::string backward) {
  return header + "\n" + variables + "forward\n" + forward + "ReLU\n{\"rank\": 0}\nbackward\n" +
         backward + "ReLU\n{\"rank\": 0}\n";
}

TEST(ChainerText, RefusesHostileFilesWithTheirPosition) {
  const std::string vars = "0 16 0\n1 16 _\n", fwd = "1 1\n0 _\n1\n",
                    bwd = "2 1\n1 gradient\n1 output\n0\n";
  ASSERT_EQ(message_of(one_function("2 2", vars, fwd, bwd)), "no error");
  const std::string good = one_function("2 2", vars, fwd, bwd);
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {"", {"ends too early", "line 1, column 1"}},
      {"2 2", {"no end"}},
      {one_function("3 2", vars, fwd, bwd), {"more variables than there are", "line 4, column 1"}},
      {one_function("1 2", vars, fwd, bwd), {"forward function belongs here", "line 3, column 1"}},
      {one_function("2 3", vars, fwd, bwd), {"odd", "line 1, column 3"}},
      {one_function("2 4", vars, fwd, bwd), {"forward function belongs here", "line 10"}},
      {one_function("2 0", vars, fwd, bwd), {"out of range", "line 1, column 3"}},
      {one_function("0 2", vars, fwd, bwd), {"out of range", "line 1, column 1"}},
      {one_function("999999999999999999999 2", vars, fwd, bwd), {"out of range"}},
      {one_function("200000 2", vars, fwd, bwd), {"more variables"}},
      {one_function("2 -2", vars, fwd, bwd), {"out of range"}},
      {one_function("2  2", vars, fwd, bwd), {"line 1, column 3"}},
      {one_function("2 2", "0 16 0\n0 16 _\n", fwd, bwd), {"id 0 comes twice", "line 3, column 1"}},
      {one_function("2 2", "0 16 0\n01 16 _\n", fwd, bwd), {"id belongs here", "line 3"}},
      {one_function("2 2", "0 16 0\n1 -1 _\n", fwd, bwd), {"out of range", "line 3, column 3"}},
      {one_function("2 2", "0 16 0\n1 99999999999999 _\n", fwd, bwd), {"out of range"}},
      {one_function("2 2", "0 16 0\n1 16 \n", fwd, bwd), {"name belongs here"}},
      {one_function("2 2", "0 16 0\n1 16\n", fwd, bwd), {"a space follows"}},
      {one_function("2 2", "0 16 /W\n1 16 /W\n", fwd, bwd), {"'/W' comes twice", "line 3"}},
      {one_function("2 2", "0 16 0\n1 16 1\n", fwd, bwd), {"input or a parameter", "line 7"}},
      {one_function("2 2", vars, "1 1\n7 _\n1\n", bwd), {"no variable has the id 7", "line 6"}},
      {one_function("2 2", vars, "1 1\n0 _\n9\n", bwd), {"no variable has the id 9", "line 7"}},
      {one_function("2 2", vars, "1 1\n0 gradient\n1\n", bwd),
       {"does not belong", "line 6, column 3"}},
      {one_function("2 2", vars, "1 1\n0 thing\n1\n", bwd), {"no tag", "line 6, column 3"}},
      {one_function("2 2", vars, "1 1\n1 _\n1\n", bwd),
       {"its own outputs", "line 6", "0, as in its backward record"}},
      {one_function("2 2", vars, "1 2\n0 _\n1\n1\n", bwd), {"made twice", "line 8", "line 7"}},
      {one_function("2 2", vars, "2 1\n0 _\n1\n", bwd),
       {"other numbers of inputs and outputs", "line 5", "1 1", "2 1"}},
      {one_function("2 2", vars, fwd, "2 1\n1 _\n1 output\n0\n"), {"does not belong"}},
      {one_function("2 2", vars, fwd, "0 1\n\n0\n"), {"at least a gradient", "line 10"}},
      {one_function("2 2", vars, fwd, "9999999 1\n1 gradient\n"), {"out of range", "line 11"}},
      {good + "forward\n", {"here is more", "line 17"}},
      {good.substr(0, good.size() - 1), {"no end", "cut short"}},
  };
  for (const auto& [text, parts] : cases) {
    const std::string message = message_of(text);
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " in\n"
                                                       << message << "\nfor\n"
                                                       << text;
    }
  }
}

TEST(ChainerText, RefusesTruncatedFiles) {
  const std::string text = read_fixture("mlp_chainer.graph.txt");
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(parse_tables(text.substr(0, length), "cut"), Error) << length;
  }
}

TEST(ChainerText, FindsLongCyclesWithoutRecursion) {
  const int count = 20000;
  std::string text = concat(count, " ", 2 * count, "\n"), forward, backward;
  for (int k = 0; k < count; ++k) {
    text += concat(k, " 4 _\n");
    forward += concat("forward\n1 1\n", (k + count - 1) % count, " _\n", k, "\nReLU\n{}\n");
    backward +=
        concat("backward\n1 1\n", k, " gradient\n", (k + count - 1) % count, "\nReLU\n{}\n");
  }
  EXPECT_NE(message_of(text + forward + backward).find("its own outputs"), std::string::npos);
}

TEST(ChainerText, SubscriptsRoundTrip) {
  const auto subscripts = [](const std::string& text) {
    Tables tables;
    tables.forward.resize(1);
    tables.backward.resize(1);
    ChainerAttribute slices{"slices", {}, 0};
    slices.value.value = text;
    tables.forward[0].attributes = {slices};
    return subscripts_of(FunctionView(tables, 0, "file"));
  };
  for (const char* text : {"(slice(None, None, None), slice(4, -4, None))", "(slice(None, 9, 2),)",
                           "(0, Ellipsis, slice(None, None, None), None, -1)"}) {
    EXPECT_EQ(print_subscripts(subscripts(text)), text);
  }
  const Subscript crop = subscripts("(slice(4, -4, None),)")[0];
  EXPECT_EQ(crop.count(64), 56);
  EXPECT_EQ(crop.count(6), 0);
  EXPECT_EQ(subscripts("(slice(None, None, 3),)")[0].count(7), 3);
  EXPECT_EQ(subscripts("(slice(None, None, -2),)")[0].count(5), 3);
  for (const char* text : {"(slice(1, 2))", "(slice(1, 2, 0),)", "(slice(a, 2, None),)", "(1 2)",
                           "(slice(99999999999999999999, 2, None),)", "(1", "(1, 2))"}) {
    EXPECT_THROW(subscripts(text), Error) << text;
  }
}

// A changed byte leads to an Error or to a document that supports every operation.
TEST(ChainerText, SurvivesChangedBytes) {
  const documents::DocumentFormat* format = documents::find_document_format("chainer");
  std::mt19937 random(5);
  for (const char* name : {"mlp_chainer.graph.txt", "residual_chainer.graph.txt"}) {
    const std::string text = read_fixture(name);
    const std::string characters = "0123456789 _\n{}[]\",:-.eNfginputo()";
    for (int round = 0; round < 150; ++round) {
      std::string changed = text;
      for (int k = 0; k < 1 + round % 3; ++k) {
        const std::size_t at = random() % changed.size();
        if (random() % 4 == 0) {
          changed.erase(at, 1 + random() % 3);
        } else {
          changed[at] = characters[random() % characters.size()];
        }
      }
      std::unique_ptr<documents::Document> document;
      try {
        document = format->read(changed, "changed");
      } catch (const Error&) {
        continue;
      }
      const std::string written = document->text("");
      EXPECT_EQ(format->read(written, "written")->text(""), written);
      document->check();
      document->describe();
      try {
        format->from_graph(document->graph());
      } catch (const Error&) {
      }
    }
  }
}

// Published and independently computed numbers of the U-Net's training step.
TEST(ChainerTraining, UNetTotalsAndPeaks) {
  const TrainingGraph graph =
      training_graph(parse_tables(read_fixture("unet_chainer.graph.txt"), "unet"), "unet");
  using TensorRole = TrainingGraph::TensorRole;
  EXPECT_EQ(graph.count_of(TensorRole::Parameter), 46u);
  EXPECT_EQ(graph.bytes_of(TensorRole::Parameter), 124'401'416);
  EXPECT_EQ(graph.bytes_of(TensorRole::Input), 15'287'296);
  EXPECT_EQ(graph.count_of(TensorRole::Intermediate), 60u);
  EXPECT_EQ(graph.bytes_of(TensorRole::Intermediate), 11'781'604'356);

  std::int64_t hidden = 0;
  for (const TrainingGraph::FunctionStep& step : graph.steps) hidden += step.hidden_bytes;
  EXPECT_EQ(hidden, 102'433'792);

  const auto place = [&](const TrainingPeak& peak) {
    return concat(peak.is_backward ? "backward " : "forward ", graph.steps[peak.step].function, " ",
                  graph.tensors[graph.steps[peak.step].makes[0]].id);
  };
  const TrainingPeak tags = peak_without_recomputation(graph, Reading::Tags);
  EXPECT_EQ(tags.bytes, 7'803'387'904);
  EXPECT_EQ(place(tags), "backward Convolution2DFunction 90");
  const TrainingPeak retained = peak_without_recomputation(graph, Reading::Retained);
  EXPECT_EQ(retained.bytes, 7'277'658'112);
  EXPECT_EQ(place(retained), "backward Convolution2DFunction 90");
  const TrainingPeak least_tags = largest_working_set(graph, Reading::Tags);
  EXPECT_EQ(least_tags.bytes, 2'832'334'848);
  EXPECT_EQ(place(least_tags), "backward Concat 91");
  const TrainingPeak least = largest_working_set(graph, Reading::Retained);
  EXPECT_EQ(least.bytes, 2'199'724'032);
  EXPECT_EQ(place(least), "backward Convolution2DFunction 90");

  const std::vector<std::size_t> kept = kept_for_backward(graph, Reading::Retained);
  std::int64_t kept_bytes = 0;
  for (const std::size_t tensor : kept) kept_bytes += graph.tensors[tensor].bytes;
  EXPECT_EQ(kept.size(), 33u);
  EXPECT_EQ(kept_bytes / 1'000'000, 6'558);
}

// A value that a function reads twice appears once in its forward record, twice in its backward
// one.
TEST(ChainerTraining, RepeatedOperands) {
  const Tables tables = parse_tables(read_fixture("mlp_chainer.graph.txt"), "mlp");
  const TrainingGraph graph = training_graph(tables, "mlp");
  const auto square = std::find_if(graph.steps.begin(), graph.steps.end(),
                                   [](const auto& step) { return step.function == "Mul"; });
  ASSERT_NE(square, graph.steps.end());
  ASSERT_EQ(square->reads.size(), 2u);
  EXPECT_EQ(square->reads[0], square->reads[1]);
  EXPECT_EQ(square->retained.inputs.size(), 2u);
  EXPECT_EQ(tables.forward[square->record].inputs.size(), 1u);
}

}  // namespace
}  // namespace tenon::documents::chainer::chainer_test
