#include "base/error.h"
#include "documents/document.h"
#include "models/inputs.h"
#include "reference/evaluate.h"
#include "unit/documents/mutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace tenon::relay_test {
namespace {

std::unique_ptr<documents::Document> read(const std::string& text) {
  return documents::find_document_format("relay")->read(text, "test");
}

std::string written(const std::string& text) { return read(text)->text(""); }

std::map<std::string, int> op_counts(const Graph& graph) {
  std::map<std::string, int> counts;
  for (NodeId id : graph.nodes_in_order()) ++counts[std::string(graph.op_name(id))];
  return counts;
}

// A program of one function over x: f32[2, 3].
std::string program(const std::string& lines) {
  return "def @main(%x: Tensor[(2, 3), float32]) {\n" + lines + "}\n";
}

std::vector<double> results(const std::string& text) {
  const Graph graph = read(text)->graph();
  std::vector<double> numbers;
  for (const Datum& datum : reference::evaluate(graph, models::random_inputs(graph, 1))) {
    for (const double number : datum.tensor().reals()) numbers.push_back(number);
  }
  return numbers;
}

TEST(RelayDocument, FixturesRoundTripByteForByte) {
  for (const char* name : {"resnet50_v1.before.relay", "resnet50_v1.after.relay",
                           "relay_control.relay", "relay_branches.relay"}) {
    const std::string text = read_fixture(name);
    EXPECT_EQ(written(text), text) << name;
    const documents::Findings findings = read(text)->check();
    EXPECT_TRUE(findings.mismatches().empty()) << name << findings.mismatches().front().place;
    EXPECT_TRUE(documents::find_document_format("relay")->recognises(text));
  }
}

// The graph keeps names, the order of constants and the id comment.
TEST(RelayDocument, ResNetRoundTripsThroughItsGraph) {
  for (const char* name : {"resnet50_v1.before.relay", "resnet50_v1.after.relay"}) {
    const std::string text = read_fixture(name);
    EXPECT_EQ(documents::find_document_format("relay")->from_graph(read(text)->graph())->text(""),
              text)
        << name;
  }
}

TEST(RelayDocument, CountsOfTheFixtures) {
  const auto before = op_counts(read(read_fixture("resnet50_v1.before.relay"))->graph());
  EXPECT_EQ(before, (std::map<std::string, int>{{"add", 70},
                                                {"constant", 108},
                                                {"conv", 54},
                                                {"max_pool", 4},
                                                {"pad", 1},
                                                {"reduce_mean", 1},
                                                {"relu", 49}}));
  auto after = op_counts(read(read_fixture("resnet50_v1.after.relay"))->graph());
  EXPECT_EQ(after["cast_hint"], 86);
  EXPECT_EQ(after["stop_fusion"], 86);
}

TEST(RelayDocument, ChecksTypeComments) {
  const std::map<std::string, std::size_t> comments = {{"resnet50_v1.before.relay", 288},
                                                       {"resnet50_v1.after.relay", 460}};
  for (const auto& [name, count] : comments) {
    const std::string text = read_fixture(name);
    std::size_t written_comments = 0;
    for (std::size_t at = 0; (at = text.find("/* ty=", at)) != std::string::npos; ++at)
      ++written_comments;
    EXPECT_EQ(written_comments, count);
    const documents::Findings findings = read(text)->check();
    for (const documents::Findings::Kind& kind : findings.kinds()) {
      if (kind.name != "type comment") continue;
      EXPECT_EQ(kind.holding, count) << name;
    }
  }
}

TEST(RelayDocument, LaterStylePrintsMore) {
  const std::string text = read_fixture("relay_branches.relay");
  const auto document = read(text);
  EXPECT_EQ(document->text("later"), text);
  const std::string early = document->text("document");
  EXPECT_EQ(early.find("span="), std::string::npos);
  EXPECT_NE(early.find("%4 = nn.relu(%3) /* /main/relu */ /* ty="), std::string::npos);
  EXPECT_NE(early.find("%3 = %1.0;"), std::string::npos);
  const std::string golden = read(read_fixture("resnet50_v1.before.relay"))->text("later");
  EXPECT_NE(
      golden.find(
          "%data: Tensor[(32, 224, 224, 3), float32] /* ty=Tensor[(32, 224, 224, 3), float32] */"),
      std::string::npos);
  EXPECT_NE(golden.find("%3 = nn.relu(%2) /* ty=Tensor[(32, 112, 112, 64), float32] "
                        "span=resnet_v1_50/conv1/Relu:0:0 */;"),
            std::string::npos);
  EXPECT_EQ(written(golden), golden);
  EXPECT_EQ(read(golden)->text("document"), read_fixture("resnet50_v1.before.relay"));
  EXPECT_THROW(document->text("newest"), Error);
}

TEST(RelayDocument, MetadataRoundTrips) {
  const std::string plain =
      program("  add(%x, meta[relay.Constant][0] /* ty=Tensor[(3), float32] */)\n");
  const std::string with_data = read(plain)->text("metadata");
  EXPECT_NE(with_data.find("#[metadata]"), std::string::npos);
  EXPECT_EQ(written(with_data), with_data);
  EXPECT_EQ(results(with_data), results(plain));
  // The metadata's type is authoritative: a different stated type is reported.
  std::string wrong = with_data;
  const std::string type = "Tensor[(3), float32] */";
  wrong.replace(wrong.find(type), type.size(), "Tensor[(1), float32] */");
  EXPECT_EQ(read(wrong)->check().mismatches().size(), 1u);
}

TEST(RelayText, OperatorPrecedence) {
  EXPECT_EQ(written(program("  %x + %x * 2f - %x / 4f < %x == True\n")),
            program("  %0 = multiply(%x, 2f);\n  %1 = add(%x, %0);\n  %2 = divide(%x, 4f);\n  %3 = "
                    "subtract(%1, %2);\n"
                    "  %4 = less(%3, %x);\n  equal(%4, True)\n"));
}

TEST(RelayText, ScalarsOfEveryType) {
  const std::string text = program(
      "  (0, -5, 7i64, 3000000000i64, 3i16, 0.5f, -1e-05f, 1f64, 0.1f64, 2.5f16, True, False, "
      "inff, -inff)\n");
  EXPECT_EQ(written(text), text);
  EXPECT_EQ(written(program("  (3000000000, 0.50f, 1.0f)\n")),
            program("  (3000000000i64, 0.5f, 1f)\n"));
  // More than the reference's six digits if six would round to another number.
  EXPECT_EQ(written(program("  (0.333333343f, 0.1f, 16777217f64)\n")),
            program("  (0.333333343f, 0.1f, 16777217f64)\n"));
}

TEST(RelayText, NestedCommentsAndNames) {
  EXPECT_EQ(
      written("// first\n" + program("  /* a /* b */ c */ nn.relu(%x) /* a/b   c */ // end\n")),
      program("  nn.relu(%x) /* a/b c */\n"));
}

TEST(RelayText, TypesOfAllKinds) {
  const std::string text =
      "def @main[A](%x: Tensor[(?, 3), float32], %f: fn (float32, (int8, bool)) -> (), %t: "
      "(int32,), %u: _, %v: List[A]) "
      "-> Tensor[(?, 3), float32] {\n  nn.relu(%x)\n}\n";
  EXPECT_EQ(written(text), text);
}

TEST(RelayText, OmitsDefaultAttributes) {
  EXPECT_EQ(
      written(program(
          "  %0 = mean(%x, exclude=False, keepdims=True, axis=[0]);\n  nn.softmax(%0, axis=-1)\n")),
      program("  %0 = mean(%x, axis=[0], keepdims=True);\n  nn.softmax(%0)\n"));
  EXPECT_EQ(written(program("  my.op(%x, b=1, a=None, c=[(1, 2), \"t\\\"\"])\n")),
            program("  my.op(%x, b=1, a=None, c=[[1, 2], \"t\\\"\"])\n"));
}

TEST(RelayText, NumbersDuplicateNames) {
  EXPECT_EQ(
      written("def @main(%x: float32) {\n  let %x = add(%x, 1f);\n  let %_y = %x;\n  %_y\n}\n"),
      "def @main(%x: float32) {\n  let %x1 = add(%x, 1f);\n  let %v_y = %x1;\n  %v_y\n}\n");
}

// A line that a branch reads is printed outside the branch.
TEST(RelayText, KeepsLinesInTheirBlocks) {
  const std::string text =
      "def @main(%x: float32, %c: bool) {\n  %0 = exp(%x);\n  %2 = if (%c) {\n    %1 = add(%0, "
      "%x);\n"
      "    tanh(%1)\n  } else {\n    %0\n  };\n  add(%0, %2)\n}\n";
  EXPECT_EQ(written(text), text);
}

TEST(RelayText, SingleFunction) {
  const std::string text =
      "fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {\n  nn.relu(%x)\n}\n";
  EXPECT_EQ(written(text), text);
  EXPECT_EQ(op_counts(read(text)->graph()), (std::map<std::string, int>{{"relu", 1}}));
}

TEST(RelayText, DeepChains) {
  std::string lines = "  %0 = nn.relu(%x);\n", lets, ifs = "  %0 = nn.relu(%x);\n";
  constexpr int count = 20000;
  for (int k = 1; k < count; ++k) lines += concat("  %", k, " = nn.relu(%", k - 1, ");\n");
  EXPECT_EQ(written(program(lines + concat("  nn.relu(%", count - 1, ")\n"))),
            program(lines + concat("  nn.relu(%", count - 1, ")\n")));
  EXPECT_EQ(read(program(lines + concat("  nn.relu(%", count - 1, ")\n")))->graph().node_count(),
            count + 1u);
  for (int k = 0; k < count; ++k)
    lets += concat("  let %a", k, " = nn.relu(%", k == 0 ? "x" : concat("a", k - 1), ");\n");
  EXPECT_EQ(read(program(lets + concat("  %a", count - 1, "\n")))->graph().node_count(),
            static_cast<std::size_t>(count));
  for (int k = 1; k < 500; ++k)
    ifs += concat("  %", k, " = if (True) {\n    %", k - 1, "\n  } else {\n    %x\n  };\n");
  EXPECT_EQ(written(program(ifs + "  nn.relu(%499)\n")), program(ifs + "  nn.relu(%499)\n"));
}

TEST(RelayGraph, LetsFunctionsAndBranches) {
  const std::string text =
      "def @twice(%v: Tensor[(2, 3), float32]) {\n  %v + %v\n}\n\n"
      "def @main(%x: Tensor[(2, 3), float32]) {\n  let %f = fn (%p: Tensor[(2, 3), float32]) { %p "
      "* %x };\n"
      "  %0 = if (max(%x) < 1000f) { @twice(%x) } else { %f(%x) };\n  (%0, %f(%0).0)\n}\n";
  EXPECT_THROW(read(text)->graph(), Error);  // .0 of a tensor
  const std::string fixed = [&] {
    std::string copy = text;
    copy.replace(copy.find("%f(%0).0"), 8, "%f(%0)");
    return copy;
  }();
  const std::vector<double> got = results(fixed), x = results(program("  %x\n"));
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_NEAR(got[k], 2 * x[k], 1e-5);
    EXPECT_NEAR(got[6 + k], 2 * x[k] * x[k], 1e-4);
  }
}

TEST(RelayGraph, InfersLayoutsFromReaders) {
  // relu precedes the convolution that determines the layout.
  const Graph graph =
      read(
          "def @main(%x: Tensor[(1, 4, 4, 3), float32]) {\n  %0 = nn.relu(%x);\n  %1 = "
          "nn.conv2d(%x, "
          "meta[relay.Constant][0] /* ty=Tensor[(1, 1, 3, 3), float32] */, data_layout=\"NHWC\", "
          "kernel_layout=\"HWIO\");\n  add(%0, %1)\n}\n")
          ->graph();
  EXPECT_EQ(to_string(graph.value(graph.inputs()[0]).type), "f32[1, 4, 4, 3]@NHWC");
  EXPECT_EQ(to_string(graph.value(graph.outputs()[0]).type), "f32[1, 4, 4, 3]@NHWC");
  // One value with two readers, the second through a reshape to its own shape.
  auto counts = op_counts(
      read("def @main(%x: Tensor[(1, 3, 3, 3), float32]) {\n  %0 = nn.max_pool2d(%x, pool_size=[2, "
           "2], "
           "layout=\"NHWC\");\n  %1 = nn.max_pool2d(%x, pool_size=[1, 1]);\n  (%0, %1)\n}\n")
          ->graph());
  EXPECT_EQ(counts["reshape"], 1);
}

TEST(RelayGraph, PaddingOfTwoAndOfFour) {
  const auto shape = [](const std::string& padding) {
    const Graph graph = read(
                            "def @main(%x: Tensor[(1, 1, 8, 8), float32]) {\n  nn.max_pool2d(%x, "
                            "pool_size=[2, 2], padding=" +
                            padding + ")\n}\n")
                            ->graph();
    return to_string(graph.value(graph.outputs()[0]).type);
  };
  EXPECT_EQ(shape("[1, 0]"), "f32[1, 1, 9, 7]");
  EXPECT_EQ(shape("[1, 0, 0, 1]"), "f32[1, 1, 8, 8]");
  EXPECT_EQ(shape("1"), "f32[1, 1, 9, 9]");
}

TEST(RelayGraph, SpecialExtentsOfReshape) {
  const auto shape = [](const std::string& words) {
    const Graph graph =
        read("def @main(%x: Tensor[(2, 3, 4, 5), float32]) {\n  reshape(%x, newshape=" + words +
             ")\n}\n")
            ->graph();
    return to_string(graph.value(graph.outputs()[0]).type);
  };
  EXPECT_EQ(shape("[0, -1]"), "f32[2, 60]");
  EXPECT_EQ(shape("[6, 1, -2]"), "f32[6, 1, 4, 5]");
  EXPECT_EQ(shape("[-3, -3]"), "f32[6, 20]");
  EXPECT_EQ(shape("[0, -4, 3, -1, -2]"), "f32[2, 3, 1, 4, 5]");
}

TEST(RelayGraph, FixedPointMultipliersOfTheSpecification) {
  // 0.75 = 1610612736 / 2^31, ties upwards.
  const std::string text =
      "def @main() {\n  fixed_point_multiply(cast(full(-3, shape=[1], dtype=\"int32\"), "
      "dtype=\"int32\"), "
      "multiplier=1610612736, shift=0)\n}\n";
  EXPECT_EQ(results(text), (std::vector<double>{-2}));
}

TEST(RelayGraph, ListsAllUnknownOperators) {
  try {
    read(program("  %0 = vision.nms(%x) /* ty=Tensor[(2, 3), float32] */;\n  %1 = vision.nms(%0) "
                 "/* ty=Tensor[(2, 3), float32] */;\n"
                 "  my.op(%1) /* ty=Tensor[(2, 3), float32] */\n"))
        ->graph();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_NE(std::string(error.what()).find("my.op (1), vision.nms (2)"), std::string::npos)
        << error.what();
  }
}

struct Refusal {
  std::string text, part;
  /// the text parses, but does not make a graph
  bool is_of_graph = false;
};

TEST(RelayHostile, RefusesTextsWithTheirPosition) {
  const std::vector<Refusal> refusals = {
      {"", "expected 'def @name(…)'"},
      {"def", "expected the name of a function"},
      {"def @main", "expected '(' before parameters"},
      {"def @main(%x: float32) {", "expected an expression"},
      {"def @main(%x: float32) { %x", "expected '}'"},
      {program("  %0 = nn.relu(%x);\n  %0 = nn.relu(%x);\n  %0\n"), "test, line 3, column 3"},
      {program("  %0 = nn.relu(%x);\n  %0 = nn.relu(%x);\n  %0\n"), "%0 is bound twice"},
      {program("  nn.relu(%7)\n"), "%7 is read before it is bound"},
      {program("  %0 = nn.relu(%0);\n  %0\n"), "%0 is read before it is bound"},
      {program("  nn.relu(%y)\n"), "nothing is called %y here"},
      {program("  @none(%x)\n"), "no function is called @none"},
      {program("  %x\n") + program("  %x\n"), "@main is defined twice"},
      {"def @main(%x: float32, %x: float32) { %x }", "comes twice"},
      {program("  nn.relu(%x, axis=1)\n"), "nn.relu has no attribute 'axis'"},
      {program("  mean(%x, axi=1)\n"), "did you mean 'axis'"},
      {program("  mean(%x, axis=1, axis=0)\n"), "given twice"},
      {program("  nn.relu(%x, %x)\n"), "another number of arguments"},
      {program("  nn.relu(axis=1, %x)\n"), "nn.relu has no attribute"},
      {program("  my.op(axis=1, %x)\n"), "arguments come before attributes"},
      {program("  1.5\n"), "lacks its suffix"},
      {program("  99999999999999999999\n"), "64 bits"},
      {program("  70000f16\n"), "does not fit in its type"},
      {program("  1e40f\n"), "does not fit in its type"},
      {program("  40000i16\n"), "does not fit in its type"},
      {program("  %99999999999999999999\n"), "out of range"},
      {program("  (%x, %x).99999999999999999999\n"), "out of range"},
      {program("  nn.relu(%x) /* ty=Tensor[(2, 3), float33] */\n"), "no element type"},
      {program("  nn.relu(%x) /* ty=Tensor[(2, 3) float32] */\n"), "expected ','"},
      {program("  nn.relu(%x) /* ty=float32 more */\n"), "goes on after its type"},
      {program("  nn.relu(%x) /* ty=float32 span=a:b */\n"), "name:line:column"},
      {program("  nn.relu(%x) /* ty=float32 */ /* ty=int8 */\n"), "has two types"},
      {program(
           "  (meta[relay.Constant][0] /* ty=float32 */, meta[relay.Constant][0] /* ty=int8 */)\n"),
       "constant 0 has two types"},
      {program("  meta[relay.attrs.X][0]\n"), "only constants"},
      {program("  meta[relay.Constant][99999999999]\n"), "index of a metadata entry"},
      {program("  /* \n"), "a comment does not end"},
      {program("  \"text\n"), "a text does not end"},
      {program("  $\n"), "no word of Relay"},
      {program("  match (%x) {}\n"), "'match' has no tensors"},
      {"type List { }", "'type' has no tensors"},
      {program("  if (%x) { %x }\n"), "expected 'else'"},
      {program("  let %a = %a;\n  %a\n"), "nothing is called %a"},
      {program("  %x\n") + "#[metadata]\n{", "the metadata"},
      {"#[version = 5]\n" + program("  %x\n"), "the version as a text"},
      {program("  " + std::string(400, '(') + "%x" + std::string(400, ')') + "\n"),
       "nests more than"},
      {program("  my.op(%x, a=" + std::string(400, '[') + std::string(400, ']') + ")\n"),
       "nests more than"},
      {"def @main(%x: " + std::string(400, '(') + "float32) { %x }", "nests more than"},
      {program("  %0 = (%x, %x);\n  %0.2\n"), "there is no such field", true},
      {program("  %x.0\n"), "there is no such field", true},
      {program("  %x(%x)\n"), "is no function", true},
      {program("  fn (%y: float32) { %y }\n"), "a function is given", true},
      {program("  @main(%x)\n"), "calls itself", true},
      {program("  meta[relay.Constant][0]\n"), "nothing says what constant 0 is", true},
      {program("  add(%x, meta[relay.Constant][0] /* ty=Tensor[(?), float32] */)\n"), "not known",
       true},
      {program("  add(%x, meta[relay.Constant][0] /* ty=Tensor[(99999999, 99999999, 99999999), "
               "float32] */)\n"),
       "test, line 2", true},
      {program("  add(%x, 1)\n"), "differ in element type", true},
      {program("  nn.dense(%x, %x, units=7)\n"), "the attribute units is not what follows", true},
      {program("  transpose(%x, axes=[0, 0])\n"), "test, line 2", true},
      {program("  reshape(%x, newshape=[-9])\n"), "no such word", true},
      {program("  split(%x, indices_or_sections=99999999999)\n"), "no such number of parts", true},
      {program("  nn.max_pool2d(%x, pool_size=[2, 2])\n"), "rank", true},
      {program("  cast(%x, dtype=\"int7\")\n"), "no element type", true},
      {program("  nn.softmax(%x, axis=\"a\")\n"), "no whole number", true},
      {"def @a(%x: float32) { %x }\ndef @b(%x: float32) { %x }", "no function to start with", true},
      {"def @main(%x) { %x }", "nothing says the type of %x", true},
      {"def @main(%x: float32) { free_var %y: float32; %y }", "free variable", true},
      {"def @main(%f: fn (float32) -> float32) { 1f }", "is no tensor", true},
  };
  for (const Refusal& refusal : refusals) {
    try {
      const auto document = read(refusal.text);
      EXPECT_TRUE(refusal.is_of_graph) << refusal.text.substr(0, 200);
      document->check();
      document->describe();
      document->graph();
      ADD_FAILURE() << "not refused: " << refusal.text.substr(0, 200);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(refusal.part), std::string::npos)
          << refusal.text.substr(0, 200) << "\n"
          << error.what();
      EXPECT_NE(std::string(error.what()).find("test"), std::string::npos) << error.what();
    }
  }
}

TEST(RelayHostile, RefusesExponentialInlining) {
  // Each function calls the one before twice.
  std::string text = "def @f0(%x: float32) {\n  %x + %x\n}\n";
  for (int k = 1; k < 40; ++k)
    text += concat("def @f", k, "(%x: float32) {\n  @f", k - 1, "(%x) + @f", k - 1, "(%x)\n}\n");
  text += "def @main(%x: float32) {\n  @f39(%x)\n}\n";
  EXPECT_THROW(read(text)->graph(), Error);
  std::string tuples = "  %0 = (%x, %x);\n";
  for (int k = 1; k < 60; ++k) tuples += concat("  %", k, " = (%", k - 1, ", %", k - 1, ");\n");
  EXPECT_THROW(read(program(tuples + "  %59\n"))->graph(), Error);
  std::string nested = "  %0 = (%x,);\n";
  for (int k = 1; k < 20000; ++k) nested += concat("  %", k, " = (%", k - 1, ",);\n");
  EXPECT_THROW(read(program(nested + "  %19999\n"))->graph(), Error);
  // A chain of functions, each calling the next.
  std::string chain = "def @f0(%x: float32) {\n  %x + %x\n}\n";
  for (int k = 1; k < 5000; ++k)
    chain += concat("def @f", k, "(%x: float32) {\n  @f", k - 1, "(%x)\n}\n");
  EXPECT_THROW(read(chain + "def @main(%x: float32) {\n  @f4999(%x)\n}\n")->graph(), Error);
}

TEST(RelayHostile, TruncatedTextsAreRefusedOrValid) {
  const std::string text = read_fixture("relay_control.relay");
  for (std::size_t size = 0; size + 1 < text.size(); size += 3) {
    try {
      const auto document = read(text.substr(0, size));
      EXPECT_EQ(document->text(""), written(document->text("")));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("line"), std::string::npos) << size;
    }
  }
}

// A few thousand damaged files: an Error, or a document that round-trips.
TEST(RelayHostile, DamagedBytes) {
  std::mt19937 random(7);
  const std::string signs = "(){}[]<>=;,.:%@/*\"-+?0129efx_ \n";
  for (const char* name : {"relay_control.relay", "relay_branches.relay"}) {
    const std::string text = read_fixture(name);
    for (int k = 0; k < 800; ++k) {
      std::string damaged = text;
      const int changes = 1 + static_cast<int>(random() % 4);
      for (int j = 0; j < changes; ++j) {
        const std::size_t at = random() % damaged.size();
        switch (random() % 4) {
          case 0:
            damaged[at] = signs[random() % signs.size()];
            break;
          case 1:
            damaged.erase(at, 1 + random() % 20);
            break;
          case 2:
            damaged.insert(at, 1, signs[random() % signs.size()]);
            break;
          default: {
            const std::size_t from = random() % damaged.size();
            damaged.insert(at, damaged.substr(from, random() % 40));
          }
        }
        if (damaged.empty()) damaged = "d";
      }
      try {
        const auto document = read(damaged);
        const std::string once = document->text("");
        EXPECT_EQ(written(once), once) << damaged;
        document->check();
        document->describe();
        document->text("later");
        documents::find_document_format("relay")->from_graph(document->graph());
      } catch (const Error&) {
        continue;
      }
    }
  }
}

// Returns the field that contains the number; "" for numbers that the rest of the file does not
// determine.
std::string field_of(const std::string& text, const NumberInText& number) {
  const std::size_t line_start = text.rfind('\n', number.offset) + 1;
  const std::string before = text.substr(line_start, number.offset - line_start);
  const std::size_t comment = before.rfind("/*"), comment_end = before.rfind("*/");
  const bool is_in_comment =
      comment != std::string::npos && (comment_end == std::string::npos || comment_end < comment);
  // The id is an address, and names are free: neither is determined by the rest.
  if (is_in_comment) return before.compare(comment, 6, "/* ty=") == 0 ? "type comment" : "";
  // The fill value of pads.
  if (before.ends_with("%data, ")) return "";
  if (before.ends_with("%"))
    return before.find('=') == std::string::npos ? "line number" : "reference";
  if (before.ends_with("][")) return "constant's index";
  if (before.starts_with("def ")) return "type annotation";
  const std::size_t equals = before.rfind('=');
  const std::size_t name =
      equals == std::string::npos ? std::string::npos : before.find_last_of(" (", equals);
  if (name != std::string::npos && before.find(')', equals) == std::string::npos &&
      before.find(')', name) == std::string::npos) {
    const std::string attribute = before.substr(name + 1, equals - name - 1);
    return attribute.empty() ? "operator" : "attribute " + attribute;
  }
  return "other";
}

TEST(RelayMutation, FindsChangedNumbers) {
  for (const char* name : {"resnet50_v1.before.relay", "resnet50_v1.after.relay"}) {
    const std::string text = read_fixture(name);
    const MutationResult result = mutate_numbers(
        "relay", text, [&](const NumberInText& number) { return field_of(text, number); }, 75);
    EXPECT_GT(result.share(), 0.95);
    EXPECT_GE(result.first * 10, result.tried * 9);
  }
}

// Print styles of other versions.
TEST(RelayForms, StylesOfOtherVersions) {
  for (const char* text : {
           "v0.0.4\ndef @main(%x: Tensor[(2, 3), float32]) {\n  nn.relu(%x)\n}\n",
           "#[version = \"0.0.5\"]\ndef @main(%x {virtual_device=VirtualDevice(device_type=1, "
           "virtual_device_id=0)}: Tensor[(2, 3), float32], "
           "virtual_device=VirtualDevice(device_type=1)) {\n  nn.relu(%x)\n}\n",
           "def @main(%x {virtual_device=meta[VirtualDevice][0]}: Tensor[(2, 3), float32], "
           "virtual_device=meta[VirtualDevice][0]) {\n  %0 = on_device(%x, "
           "virtual_device=meta[VirtualDevice][0], constrain_result=True);\n  nn.relu(%0)\n}\n",
           "def @main(%x: Tensor[(2, 3), float32]) {\n  %0 = on_device(%x, device_type=1);\n  "
           "nn.relu(%0)\n}\n",
           "def @main(%x: Tensor[(2, 3), int]) {\n  nn.relu(%x)\n}\n",
           "fn (%x /* ty=Tensor[(2, 3), float32] */) {\n  nn.relu(%x)\n}\n",
       }) {
    const auto document = read(text);
    const Graph graph = document->graph();
    EXPECT_EQ(graph.value(graph.outputs()[0]).type.tensor().rank(), 2u) << text;
    EXPECT_TRUE(document->check().mismatches().empty()) << text;
    EXPECT_EQ(read(document->text(""))->graph().node_count(), graph.node_count()) << text;
  }
}

TEST(RelayForms, QuantizedOperators) {
  const Graph graph = read(
                          "def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(2, 4), int8]) {\n"
                          "  %0 = qnn.quantize(%x, 0.5f, 1, out_dtype=\"int8\");\n"
                          "  %1 = qnn.dense(%0, %w, 1, 0, 0.5f, 0.25f, units=2);\n"
                          "  %2 = qnn.requantize(%1, 0.125f, 0, 0.5f, 3, out_dtype=\"int8\");\n"
                          "  qnn.dequantize(%2, 0.5f, 3)\n}\n")
                          ->graph();
  const Tensor x = Tensor::of(DType::F32, {1, 4}, std::vector<double>{1, 2, -1, 0.5});
  const Tensor w = Tensor::of(DType::I8, {2, 4}, std::vector<double>{4, 8, 4, 0, -4, 0, 4, 8});
  const std::vector<Datum> results = reference::evaluate(graph, {Datum(x), Datum(w)});
  // (x W^T) / 4, in steps of a half.
  EXPECT_EQ(results[0].tensor().reals(), (std::vector<double>{4, -1}));
}

TEST(RelayForms, LineNumbering) {
  const auto document = read(
      "def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n"
      "  %0 = exp(%x) /* ty=Tensor[(2, 3), float32] */;\n"
      "  %1 = sqrt(%x) /* ty=Tensor[(2, 3), float32] */;\n"
      "  add(%1, %0) /* ty=Tensor[(2, 3), float32] */\n}\n");
  EXPECT_TRUE(document->check().mismatches().empty());
}

}  // namespace
}  // namespace tenon::relay_test
