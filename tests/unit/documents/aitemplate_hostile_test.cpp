#include "base/error.h"
#include "documents/document.h"
#include "unit/documents/mutation.h"

#include <gtest/gtest.h>

#include <random>

namespace tenon::aitemplate_hostile_test {
namespace {

const documents::DocumentFormat& format() { return *documents::find_document_format("aitemplate"); }

const std::string kGolden = "aitemplate_conv_add.graph.txt";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw Error(concat("no '", from, "' in the text"));
  return text.replace(at, from.size(), to);
}

struct BadText {
  std::string from, to;  // a change to the document; an empty `from` makes `to` the whole text
  std::string part;      // expected part of the message
};

class AITemplateHostile : public ::testing::TestWithParam<BadText> {};

TEST_P(AITemplateHostile, RefusedWithItsPosition) {
  const BadText& bad = GetParam();
  const std::string text =
      bad.from.empty() ? bad.to : replaced(read_fixture(kGolden), bad.from, bad.to);
  try {
    format().read(text, "dump.txt");
    FAIL() << "read what is wrong: " << bad.part;
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(bad.part), std::string::npos) << message;
    EXPECT_NE(message.find("dump.txt, line "), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Texts, AITemplateHostile,
    ::testing::Values(
        BadText{"", "", "ends where 'Tensors:' should stand"}, BadText{"", "Tensors: ", "ends"},
        BadText{"", "Tensors: {", "ends where a value should stand"},
        BadText{"", "Tensors: {'name': 'x'}\n\nOperators: ", "the tensor has no 'dtype'"},
        BadText{"", "Tensors: 5\n\nOperators: \n\n", "a tensor should stand here"},
        BadText{"", "Tensors: " + std::string(2000, '['), "nested more than 100 deep"},
        BadText{"", "Tensors: " + std::string(2000, '('), "nested more than 100 deep"},
        BadText{"", "Tensors: {'a': " + std::string(2000, '<'), "angle brackets does not end"},
        BadText{"'depth': 0,", "'depth': 0, 'depth': 0,", "the key 'depth' comes twice"},
        BadText{"'depth': 0,", "'depth': -1,", "a number that is not negative"},
        BadText{"'depth': 0,", "'depth': 99999999999999999999,", "does not fit in 64 bits"},
        BadText{"'depth': 0,", "'depth': 'zero',", "a whole number"},
        BadText{"'nop': False", "'nop': 0", "True or False"},
        BadText{"'values': [1]", "'values': []", "at least one value"},
        BadText{"'values': [1]", "'values': [1", "should stand here"},
        BadText{"'name': 'input_1'", "'name': 'input_0'", "two tensors are called 'input_0'"},
        BadText{"'name': 'input_1'", "'name': None", "a listed tensor has no name"},
        BadText{"'name': 'input_1'", "'name': ''", "a name is empty"},
        BadText{"'inputs': ['input_0', 'input_1']", "'inputs': ['input_0', 'input_9']",
                "'input_9'"},
        BadText{"'dst_ops': ['conv2d_0']", "'dst_ops': ['conv2d_9']", "'conv2d_9'"},
        BadText{"'inputs': ['input_0', 'input_1']", "'inputs': ['input_0', 'output_0']",
                "in a circle"},
        BadText{"'outputs': ['conv2d_0_0']", "'outputs': []", "has no outputs"},
        BadText{"<FuncEnum.ADD: 1>", "<FuncEnum.ADD>", "a function like <FuncEnum.ADD: 1>"},
        BadText{"<FuncEnum.ADD: 1>", "<FuncEnum.ADD: 1", "does not end"},
        BadText{"'op': 'conv2d'", "'op': conv2d", "a text"},
        BadText{"'input_0_dim_1'", "'input_0_dim_1", "does not end"},
        BadText{"'original_name': 'fused_elementwise_2'", "'original_name': 'conv2d_0'",
                "two operators were called"},
        BadText{"OrderedDict([", "OrderedDict([1, ", "a list of pairs"},
        BadText{"[([0], [0])", "[([0],)", "a pair of lists"},
        BadText{"'input_accessors': [", "'input_accessors': [5, ",
                "a tensor accessor should stand here"}));

TEST(AITemplateBadInput, RefusesTruncatedTexts) {
  const std::string text = read_fixture(kGolden);
  std::size_t refused = 0;
  for (std::size_t size = 0; size < text.size() - 3; size += 7) {
    try {
      format().read(text.substr(0, size), "dump");
    } catch (const Error& error) {
      ++refused;
    }
  }
  // A text that is cut after the tensors or the first operator is a smaller dump with dangling
  // names.
  EXPECT_EQ(refused, (text.size() - 3 + 6) / 7);
}

TEST(AITemplateBadInput, ListsAllUnknownOperators) {
  std::string text = replaced(read_fixture(kGolden), "'op': 'conv2d'", "'op': 'warp2d'");
  try {
    format().read(text, "dump")->graph();
    FAIL() << "there is no warp2d";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_NE(
        std::string(error.what()).find("warp2d: there is no such operator in Tenon (1 operator)"),
        std::string::npos)
        << error.what();
  }
}

TEST(AITemplateBadInput, InconsistentShapesAreGraphErrors) {
  const std::string text = replaced(read_fixture(kGolden), "'group': 1", "'group': 3");
  const std::unique_ptr<documents::Document> document = format().read(text, "dump");
  EXPECT_GE(document->check().mismatches().size(), 1u);
  EXPECT_THROW(document->graph(), Error);
}

// Operators without required operands end in an Error, not in a crash.
TEST(AITemplateBadInput, RefusesOperatorsWithoutOperands) {
  for (const char* op : {"max_pool2d", "conv2d_bias", "gemm_rcr", "bmm_ccr_add", "groupnorm",
                         "nhwc3to8", "reshape", "softmax", "layernorm", "split", "concatenate",
                         "permute021", "dynamic_slice", "reduce_sum"}) {
    std::string text =
        replaced(read_fixture(kGolden), "'op': 'conv2d'", concat("'op': '", op, "'"));
    text = replaced(text, "'inputs': ['input_0', 'input_1']", "'inputs': []");
    const std::unique_ptr<documents::Document> document = format().read(text, "dump");
    EXPECT_GE(document->check().mismatches().size(), 1u) << op;
    EXPECT_THROW(document->graph(), Error) << op;
  }
}

// A jagged dim prints as its total length.
TEST(AITemplateBadInput, JaggedDimsRoundTrip) {
  const std::string jagged =
      "{ 'batch_dim': {'depth': 0, 'name': 'b', 'nop': False, 'symbolic_value': b, 'values': [1, "
      "4]},\n"
      "  'depth': 0,\n"
      "  'jagged_dims': [ {'name': None, 'depth': 0, 'nop': False, 'values': [0, 9], 'offsets': "
      "{'name': 'offsets'}}],\n"
      "  'name': 'total',\n"
      "  'nop': False,\n"
      "  'offsets_type': 'int32_t',\n"
      "  'symbolic_value': total,\n"
      "  'values': [0, 36]}";
  std::string text = read_fixture(kGolden);
  const std::size_t start = text.find("{ 'depth': 0,\n  'name': 'batch_dim'"),
                    end = text.find('}', start) + 1;
  text.replace(start, end - start, jagged);
  const std::unique_ptr<documents::Document> document = format().read(text, "dump");
  EXPECT_EQ(document->text(""), text);
  EXPECT_GE(document->check().mismatches().size(), 1u);
}

// The fuzz target's body on a few thousand mutations of the fixtures.
TEST(AITemplateBadInput, RandomChangesNeverCrash) {
  std::mt19937 random(7);
  const std::vector<std::string> words = {"'",         "[",
                                          "]",         "{",
                                          "}",         "(",
                                          ")",         ",",
                                          ":",         "None",
                                          "True",      "-1",
                                          "0",         "9",
                                          "''",        "1e400",
                                          "<",         ">",
                                          "\n",        "\\x",
                                          "nan",       "x**2",
                                          "Max(0, x)", "[]",
                                          "set()",     "OrderedDict()",
                                          "'name'",    "'values': [3, 9]",
                                          "99999999"};
  std::size_t graphs = 0;
  for (const std::string& fixture : {kGolden, std::string("aitemplate_dynamic_batch.graph.txt"),
                                     std::string("aitemplate_strided_gemm.graph.txt")}) {
    const std::string original = read_fixture(fixture);
    for (int round = 0; round < 200; ++round) {
      std::string text = original;
      for (std::uint_fast32_t changes = 1 + random() % 3; changes > 0; --changes) {
        const std::size_t at = random() % text.size();
        const std::string& word = words[random() % words.size()];
        const std::uint_fast32_t how = random() % 4;
        if (how == 0) text.insert(at, word);
        if (how == 1) text.erase(at, 1 + random() % 12);
        if (how == 2) text.replace(at, std::min<std::size_t>(word.size(), text.size() - at), word);
        if (how == 3) text[at] = static_cast<char>('0' + random() % 10);
      }
      std::unique_ptr<documents::Document> document;
      try {
        document = format().read(text, "mutant");
      } catch (const Error&) {
        continue;
      }
      const std::string written = document->text("");
      ASSERT_EQ(format().read(written, "written")->text(""), written);
      document->check();
      document->describe();
      try {
        format().from_graph(document->graph())->text("");
        ++graphs;
      } catch (const Error&) {
        continue;
      }
    }
  }
  EXPECT_GT(graphs, 20u);
}

}  // namespace
}  // namespace tenon::aitemplate_hostile_test
