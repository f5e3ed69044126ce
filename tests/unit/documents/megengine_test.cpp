#include "base/error.h"
#include "documents/document.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/definition/registry.h"
#include "unit/documents/mutation.h"
#include "unit/error_text.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace tenon::megengine_test {
namespace {

const documents::DocumentFormat& format() { return *documents::find_document_format("megengine"); }
constexpr const char* kResnet = "megengine_resnet50.profile.json";
constexpr const char* kStatic = "megengine_static_plans.profile.json";

std::unique_ptr<documents::Document> read(const std::string& text) {
  return format().read(text, "profile.json");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string page_text(const Page& page) {
  std::string text = page.title;
  for (const Page::Section& section : page.sections) {
    text += "\n" + section.heading + "\n" + section.text;
    for (const auto& row : section.rows) {
      for (const Page::Cell& cell : row) text += " | " + cell.text;
      text += "\n";
    }
  }
  return text;
}

void expect_clean(const documents::Findings& findings) {
  EXPECT_FALSE(findings.kinds().empty());
  for (const auto& mismatch : findings.mismatches()) {
    ADD_FAILURE() << mismatch.kind << " at " << mismatch.place << ": " << mismatch.says << ", not "
                  << mismatch.should_be;
  }
}

class MegengineFixture : public ::testing::TestWithParam<const char*> {};

TEST_P(MegengineFixture, RoundTripsByteForByte) {
  const std::string text = read_fixture(GetParam());
  ASSERT_TRUE(format().recognises(std::string_view(text).substr(0, 4096)));
  EXPECT_EQ(read(text)->text(""), text);
}

TEST_P(MegengineFixture, PassesItsCheck) { expect_clean(read(read_fixture(GetParam()))->check()); }

TEST_P(MegengineFixture, GraphRoundTrips) {
  const Graph graph = read(read_fixture(GetParam()))->graph();
  EXPECT_TRUE(problems_of(graph).empty());
  const std::string written = format().from_graph(graph)->text("");
  const auto again = read(written);
  EXPECT_EQ(again->text(""), written);
  expect_clean(again->check());
  EXPECT_TRUE(problems_of(again->graph()).empty());
}

INSTANTIATE_TEST_SUITE_P(Files, MegengineFixture, ::testing::Values(kResnet, kStatic),
                         [](const auto& test) {
                           return test.index == 0 ? "Resnet50" : "StaticPlans";
                         });

std::map<std::string, std::size_t> held(const documents::Findings& findings) {
  std::map<std::string, std::size_t> counts;
  for (const auto& kind : findings.kinds()) counts[kind.name] = kind.holding;
  return counts;
}

TEST(MegengineResnet, MatchesTheSpecification) {
  auto counts = held(read(read_fixture(kResnet))->check());
  EXPECT_EQ(counts["footprint: memory"], 234U);
  EXPECT_EQ(counts["footprint: computation"], 234U);
  EXPECT_EQ(counts["comp_seq: position"], 234U);
  EXPECT_EQ(counts["input_update_time"], 234U);
  EXPECT_EQ(counts["dfs_step_num"], 234U);
  EXPECT_EQ(counts["numbers: outputs follow their operator"], 299U);
  EXPECT_EQ(counts["mem_chunk: size"], 104U);
  EXPECT_EQ(counts["addresses: end is start and span"], 286U);
  EXPECT_EQ(counts["constants take 102,106,528 bytes"], 1U);
  EXPECT_EQ(counts["live peak of 96,337,920 bytes, at operator 563"], 1U);
  EXPECT_EQ(counts["static_infer_tags: bytes of workspace"], 58U);
  EXPECT_EQ(counts["device times: what an event can tell"], 702U);
}

TEST(MegengineResnet, DescribesTotals) {
  const std::string text = page_text(read(read_fixture(kResnet))->describe());
  for (const char* part :
       {"81.954 GFLO", "2.551 GB", "22.430 ms", "22.797 ms", "3.844 ms",
        "ConvolutionForward | 53 | 81.743", "15.487", "6.236", "102,106,528 bytes in 104 constants",
        "96,337,920 bytes are alive", "operator 563 ADD(conv[557],conv[560])[563]", "26,216,960"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
  }
}

TEST(MegengineResnet, CountsOperators) {
  const Graph graph = read(read_fixture(kResnet))->graph();
  std::map<std::string, int> ops;
  for (NodeId id : graph.nodes_in_order()) ++ops[std::string(graph.op_name(id))];
  EXPECT_EQ(ops["conv"], 53);
  EXPECT_EQ(ops["relu"], 49);
  EXPECT_EQ(ops["add"], 66);  // 49 fused ones, 16 residual ones and the last bias
  EXPECT_EQ(ops["max_pool"], 1);
  EXPECT_EQ(ops["average_pool"], 1);
  EXPECT_EQ(ops["matmul"], 1);
  EXPECT_EQ(ops["constant"], 104);
  ASSERT_EQ(graph.inputs().size(), 1U);
  EXPECT_EQ(to_string(graph.value(graph.inputs()[0]).type), "f32[10, 3, 224, 224]");
  EXPECT_EQ(to_string(graph.value(graph.outputs()[0]).type), "f32[10, 1000]");
  EXPECT_EQ(graph.value(graph.outputs()[0]).name, "TRUE_DIV[857]");
}

TEST(MegengineStaticPlans, CountSharedMemoryOnce) {
  auto counts = held(read(read_fixture(kStatic))->check());
  EXPECT_EQ(counts["mem_plan: inside its chunk"], 14U);
  EXPECT_EQ(counts["mem_chunk: size"], 10U);
  EXPECT_EQ(counts["waiting_spec: vars of other comp nodes"], 2U);
  EXPECT_EQ(counts["footprint: layouts"], 2U);
  EXPECT_EQ(counts["constants take 1,728 bytes"], 1U);
}

// Mutations of the small file with the expected message of `check`.
struct Change {
  const char* from;
  const char* to;
  const char* kind;
  const char* place;
};

TEST(MegengineStaticPlans, ReportFaults) {
  const std::string text = read_fixture(kStatic);
  const Change changes[] = {
      {"\"offset_byte\": 20", "\"offset_byte\": 24", "mem_plan: inside its chunk",
       "var.34.mem_plan"},
      {"\"stride\": [ 256, 8, 1, 64]", "\"stride\": [ 256, 8, 64, 1]", "mem_plan: strides",
       "var.14.mem_plan"},
      {"\"in_layouts\": [ [ 256, 8, 1, 64]]", "\"in_layouts\": [ null]", "footprint: layouts",
       "opr_footprint.15.in_layouts"},
      {"\"dev_ready\": [ \"1\"]", "\"dev_ready\": []", "comp_node: inputs are here or waited for",
       "var.1.comp_node"},
      {"\"priority\": -5", "\"priority\": 5", "comp_seq: position", "comp_seq"},
      {"\"flag\": [ \"VOLATILE_CONTENT\", \"ALLOW_EMPTY_SHAPE\"]",
       "\"flag\": [ \"ALLOW_EMPTY_SHAPE\", \"VOLATILE_CONTENT\"]", "flags: known and in order",
       ".flag"},
      {"\"infer_type\": \"CONST\"", "\"infer_type\": \"RT_STATIC\"", "static_infer_tags: when",
       "static_infer_tags"},
      {"\"dtype\": \"Float32\"", "\"dtype\": \"Float31\"", "mem_plan: element type",
       "layout.dtype"},
      {"\"inferred_result\": [ 2, -1]", "\"inferred_result\": [ 2, -2]", "static_infer_tags: value",
       "var.23"},
      {"conv(copy[2],const{4,3,3,3}[4])[6]", "conv(copy[2],const{4,3,3,3}[9])[6]", "names of",
       ".name"},
  };
  for (const Change& change : changes) {
    const documents::Findings findings = read(replaced(text, change.from, change.to))->check();
    bool is_found = false;
    for (const auto& mismatch : findings.mismatches()) {
      is_found = is_found || (mismatch.kind.find(change.kind) != std::string::npos &&
                              mismatch.place.find(change.place) != std::string::npos);
    }
    EXPECT_TRUE(is_found) << change.to << ": " << findings.mismatches().size() << " other findings"
                          << (findings.mismatches().empty()
                                  ? ""
                                  : ", as " + findings.mismatches()[0].kind + " at " +
                                        findings.mismatches()[0].place);
  }
}

// Mutations with the expected message of the reader.
TEST(MegengineErrors, HavePositionAndReason) {
  const std::string text = read_fixture(kStatic);
  const auto error_of = [](const std::string& broken) { return error_text([&] { read(broken); }); };
  struct Case {
    std::string text;
    std::vector<std::string> parts;
  };
  const Case cases[] = {
      {text.substr(0, text.size() / 2), {"not valid JSON", "line 1, column", "cut short"}},
      {text.substr(0, text.size() - 1), {"not valid JSON", "line 1, column", "cut short"}},
      {"", {"not valid JSON", "line 1, column 1"}},
      {"[]", {"wrong kind", "an object"}},
      {"{ \"profiler\": { }}", {"a member is missing", "'graph_exec'"}},
      {replaced(text, "\"comp_seq\": [ \"26\"", "\"comp_seq\": [ \"27\""),
       {"no such operator", "$.graph_exec.comp_seq[0]", "27"}},
      {replaced(text, "\"comp_seq\": [ \"26\"", "\"comp_seq\": [ \"26\", \"26\""),
       {"twice in the sequence", "comp_seq[1]"}},
      {replaced(text, "\"input\": [ \"38\"]", "\"input\": [ \"99\"]"),
       {"no such var", "$.graph_exec.operator.39.input[0]", "99"}},
      {replaced(text, "\"output\": [ \"40\"]", "\"output\": [ \"38\"]"),
       {"two operators make the same var"}},
      {replaced(text, "\"output\": [ \"40\"]", "\"output\": []"),
       {"no operator makes this var", "$.graph_exec.var.40"}},
      {replaced(text, "\"input\": [ \"1\"], \"output\": [ \"3\"]",
                "\"input\": [ \"12\"], \"output\": [ \"3\"]"),
       {"in a circle"}},
      {replaced(text, "\"id\": \"40\"", "\"id\": \"41\""),
       {"not the one it is listed under", "$.graph_exec.var.40.id"}},
      {replaced(text, "\"39\": { \"node_type\": \"operator\"",
                "\"37\": { \"node_type\": \"operator\""),
       {"comes twice", "'37'"}},
      {replaced(text, "\"mem_chunk_id\": \"chk7\"", "\"mem_chunk_id\": \"chk6\""),
       {"no such memory chunk", "mem_plan.mem_chunk_id"}},
      {replaced(text, "\"owner_var\": \"1\"", "\"owner_var\": \"2\""),
       {"no such var", "$.graph_exec.mem_chunk.chk1.owner_var"}},
      {replaced(text, "\"mem_readonly_fwd_src\": \"12\"", "\"mem_readonly_fwd_src\": \"13\""),
       {"no such var", "mem_readonly_fwd_src"}},
      {replaced(text, "\"var\": \"29\"", "\"var\": \"28\""), {"no such var", "static_infer_tags"}},
      {replaced(text, "\"dev_ready\": [ \"1\"]", "\"dev_ready\": [ \"2\"]"),
       {"no such var", "waiting_spec.gpu0:0.dev_ready[0]"}},
      {replaced(text, "\"host\": { \"26\"", "\"host\": { \"25\""),
       {"no such operator", "$.profiler.host.25"}},
      {replaced(text, "\"memory\": 1536", "\"memory\": -1"),
       {"out of range", "$.profiler.opr_footprint.0.memory", "-1"}},
      {replaced(text, "\"memory\": 1536", "\"memory\": 1e400"), {"out of range"}},
      {replaced(text, "\"memory\": 1536", "\"memory\": 99999999999999999999"),
       {"out of range", "99999999999999999999"}},
      {replaced(text, "\"priority\": 0", "\"priority\": 3000000000"),
       {"out of range", "extra.priority"}},
      {replaced(text, "\"shape\": [ 2, 3, 8, 8]", "\"shape\": [ 2, -3, 8, 8]"),
       {"out of range", "mem_plan.layout.shape[1]"}},
      {replaced(text, "\"shape\": [ 2, 3, 8, 8]", "\"shape\": [ 2, 3, 8]"),
       {"differ in length", "mem_plan.layout"}},
      {replaced(text, "\"start\": 0.25,", "\"start\": 1.7976931348623157e308,"),
       {"out of range", "start"}},
      {replaced(text, "\"start\": 0.25,", "\"start\": \"soon\","), {"not a number", "soon"}},
      {replaced(text, "\"comp_seq\": [ \"26\"", "\"comp_seq\": [ \"026\""),
       {"not the number of an operator", "026"}},
      {replaced(text, "\"comp_seq\": [ \"26\"", "\"comp_seq\": [ 26"),
       {"wrong kind", "comp_seq[0]", "a text"}},
      {replaced(text, "\"node_type\": \"var\"", "\"node_type\": \"operator\""),
       {"something else", "node_type"}},
      {replaced(text, "\"name\": \"images\\/x\"", "\"name\": \"a\", \"name\": \"b\""),
       {"comes twice", "'name'"}},
      {"{ \"graph_exec\": " + std::string(200, '['), {"nested too deeply"}},
  };
  for (const Case& each : cases) {
    const std::string message = error_of(each.text);
    for (const std::string& part : each.parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
    }
  }
}

TEST(MegengineFile, KeepsUnknownMembers) {
  const std::string text =
      "{ \"version\": [ 1, 2.5, true, { }], \"graph_exec\": { \"comp_seq\": [], \"operator\": { }, "
      "\"note\": \"a\\/b\\u0001\", "
      "\"var\": { }}, \"profiler\": { \"host\": { }, \"clock\": \"inf\"}}";
  EXPECT_EQ(read(text)->text(""), text);
}

TEST(MegengineFile, NormalizesJsonStyle) {
  EXPECT_EQ(read("{\"graph_exec\":{\"comp_seq\":[],\"var\":{},\"operator\":{}}}\n")->text(""),
            "{ \"graph_exec\": { \"comp_seq\": [], \"var\": { }, \"operator\": { }}}");
}

TEST(MegengineFile, RecognisesOnlyItsFormat) {
  for (const char* head : {"", "{", "{}", "{\"nodes\": []}", "profiler", "graph (x: f32[1]) {",
                           "[ \"profiler\"]", "# \"profiler\""}) {
    EXPECT_FALSE(format().recognises(head)) << head;
  }
  for (const char* head : {"{ \"profiler\": {", "\n{\"graph_exec\"", "{\"profiler\""})
    EXPECT_TRUE(format().recognises(head)) << head;
}

// Structural text of a graph: nodes numbered by a walk from the outputs, constants by type only.
std::vector<std::string> structure(const Graph& graph) {
  std::vector<std::string> lines;
  std::map<ValueId, std::string> names;
  for (std::size_t k = 0; k < graph.inputs().size(); ++k) {
    names[graph.inputs()[k]] = concat("input ", k, ": ", graph.value(graph.inputs()[k]).type);
  }
  std::vector<NodeId> stack;
  std::set<NodeId> done;
  for (ValueId output : graph.outputs()) {
    if (graph.value(output).producer) stack.push_back(graph.value(output).producer);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      const std::size_t depth = stack.size();
      const Node& node = graph.node(id);
      if (!done.contains(id)) {
        for (ValueId operand : node.operands) {
          if (!operand || names.contains(operand)) continue;
          if (const Constant* constant = graph.constant_of(operand)) {
            // MegEngine stores a scalar with one axis.
            const bool is_scalar = constant->shape().empty();
            names[operand] = is_scalar ? concat("constant ", constant->dtype(), "[1]")
                                       : concat("constant ", constant->type());
          } else {
            stack.push_back(graph.value(operand).producer);
          }
        }
      }
      if (stack.size() > depth) continue;
      stack.pop_back();
      if (!done.insert(id).second) continue;
      std::string line = std::string(node.op->name) + "(";
      for (ValueId operand : node.operands) line += (operand ? names[operand] : "_") + ", ";
      for (std::size_t k = 0; k < node.results.size(); ++k) {
        if (!node.results[k]) continue;
        names[node.results[k]] = concat("%", lines.size(), ".", k);
        line += concat(") -> ", graph.value(node.results[k]).type);
      }
      lines.push_back(line);
    }
  }
  for (ValueId output : graph.outputs()) lines.push_back("return " + names[output]);
  return lines;
}

class MegengineZoo : public ::testing::TestWithParam<const char*> {};

TEST_P(MegengineZoo, RoundTripsTheStructure) {
  const Graph graph = zoo::build(GetParam());
  const std::string text = format().from_graph(graph)->text("");
  const auto document = read(text);
  EXPECT_EQ(document->text(""), text);
  expect_clean(document->check());
  const std::vector<std::string> before = structure(graph), after = structure(document->graph());
  EXPECT_EQ(after.size(), before.size());
  for (std::size_t k = 0; k < std::min(before.size(), after.size()); ++k)
    ASSERT_EQ(after[k], before[k]) << "line " << k;
}

INSTANTIATE_TEST_SUITE_P(Networks, MegengineZoo,
                         ::testing::Values("mlp", "lstm", "alexnet", "resnet18", "squeezenet",
                                           "mobilenet_v2", "unet572", "gpt2", "bert_base"),
                         [](const auto& test) { return std::string(test.param); });

// A profile describes one run, with the least extents; the symbols survive the round trip.
TEST(MegengineWriter, WritesSymbolsAtTheirMinimum) {
  const Graph graph =
      parse_graph("graph <N in [4, 8], M> (x: f32[N, M]) { y = relu(x) return y }", all_ops());
  const std::string text = format().from_graph(graph)->text("");
  EXPECT_NE(text.find("\"out_shapes\": [ [ 4, 1]]"), std::string::npos) << text;
  const Graph again = read(text)->graph();
  EXPECT_EQ(to_string(again.value(again.outputs()[0]).type), "f32[N, M]");
}

TEST(MegengineWriter, NamesAndNumbersMatchMegengine) {
  const Graph graph = parse_graph(
      "graph (x: f32[1, 2, 4, 4]) { w = constant f32[2, 2, 3, 3] splat 0.5 c = conv(x, w) {pads = "
      "[1, 1, 1, 1]} "
      "two = constant f32[1] [2] m = mul(c, two) y = reduce_max(m) {axes = [1]} return y }",
      all_ops());
  const std::string text = format().from_graph(graph)->text("");
  for (const char* part :
       {"\"name\": \"const{2,2,3,3}[2]\"", "\"name\": \"conv(x,const{2,2,3,3}[2])[4]\"",
        "\"name\": \"conv(x,const{2,2,3,3}[2])[4]:workspace\"", "\"name\": \"const<2>[7]\"",
        "\"name\": \"MUL(conv[4],const<2>[7])[9]\"", "\"name\": \"reduce4(MUL[9])[11]\"",
        "\"comp_seq\": [ \"7\", \"2\", \"0\", \"4\", \"9\", \"11\", \"14\"]",
        "\"computation\": 1152"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
}

TEST(MegengineWriter, RefusesSequences) {
  const Graph graph = parse_graph("graph (x: seq(f32[2])) { y = identity(x) return y }", all_ops());
  EXPECT_THROW(format().from_graph(graph), Error);
}

// Bytes changed at random: an Error, or a document that supports every operation.
TEST(MegengineErrors, RandomBytesAreRefusedOrUsable) {
  const std::string original = read_fixture(kStatic);
  std::uint64_t state = 12345;
  const auto random = [&](std::size_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  const std::string alphabet = "0123456789-\"[]{},:.eE ntx/\\";
  std::size_t read_count = 0;
  for (int round = 0; round < 700; ++round) {
    std::string text = original;
    for (std::size_t k = 0; k <= random(3); ++k) {
      const std::size_t at = random(text.size());
      if (random(4) == 0) {
        text.erase(at, random(20));
      } else {
        text[at] = alphabet[random(alphabet.size())];
      }
    }
    try {
      const auto document = read(text);
      ++read_count;
      const std::string written = document->text("");
      ASSERT_EQ(read(written)->text(""), written);
      document->check();
      document->describe();
      format().from_graph(document->graph());
    } catch (const Error&) {
      continue;
    }
  }
  EXPECT_GT(read_count, 100U);  // enough of them reach the reader
}

// Path of each number of a JSON text, with the numbers of operators and vars left out, and ".key"
// at the end for a number in a member's name.
class NumberFields {
 public:
  explicit NumberFields(std::string_view text) : text_(text) {
    value(0, "");
    std::sort(spans_.begin(), spans_.end(),
              [](const Span& a, const Span& b) { return a.begin < b.begin; });
  }

  std::string at(std::size_t offset) const {
    const auto behind =
        std::upper_bound(spans_.begin(), spans_.end(), offset,
                         [](std::size_t at, const Span& span) { return at < span.begin; });
    return behind == spans_.begin() ? "" : std::prev(behind)->field;
  }

 private:
  struct Span {
    std::size_t begin;
    std::string field;
  };

  std::size_t skip(std::size_t at) const {
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == ',' || text_[at] == '\n')) ++at;
    return at;
  }
  std::string_view string_at(std::size_t at) const {
    return text_.substr(at + 1, text_.find('"', at + 1) - at - 1);
  }

  static std::string shared(std::string_view key) {
    const bool is_number = !key.empty() && std::all_of(key.begin(), key.end(),
                                                       [](char c) { return c >= '0' && c <= '9'; });
    return is_number || key.starts_with("chk") || key.starts_with("gpu") || key.starts_with("cpu")
               ? "*"
               : std::string(key);
  }

  std::size_t value(std::size_t at, const std::string& path) {
    at = skip(at);
    if (text_[at] == '{') {
      at = skip(at + 1);
      while (text_[at] != '}') {
        const std::string_view key = string_at(at);
        const std::string field = path + "." + shared(key);
        spans_.push_back({at, field + ".key"});
        at = skip(text_.find(':', at + key.size() + 1) + 1);
        at = skip(value(at, field));
      }
      return at + 1;
    }
    if (text_[at] == '[') {
      at = skip(at + 1);
      while (text_[at] != ']') at = skip(value(at, path + "[]"));
      return at + 1;
    }
    spans_.push_back({at, path});
    if (text_[at] == '"') return at + string_at(at).size() + 2;
    while (at < text_.size() && text_[at] != ',' && text_[at] != '}' && text_[at] != ']') ++at;
    return at;
  }

  std::string_view text_;
  std::vector<Span> spans_;
};

TEST(MegengineMutation, FindsChangedNumbers) {
  const std::string text = read_fixture(kResnet);
  const NumberFields fields(text);
  const auto field_of = [&](const NumberInText& number) -> std::string {
    const std::string field = fields.at(number.offset);
    // A host time is bounded by its neighbours only: one microsecond more is as likely.
    if (field.starts_with(".profiler.host") && !field.ends_with(".key")) return "";
    return field;
  };
  const MutationResult result = mutate_numbers("megengine", text, field_of, 30);
  EXPECT_GT(result.share(), 0.95);
  EXPECT_GE(result.first * 10, result.tried * 9);
}

}  // namespace
}  // namespace tenon::megengine_test
