#include "unit/documents/tensorscope_tables.h"

#include <gtest/gtest.h>

#include <random>

namespace tenon::documents::tensorscope::tensorscope_hostile_test {
namespace {

struct Hostile {
  const char* name;
  std::string text;
  /// expected part of the message
  const char* part;
  /// line and column
  const char* place;
};

std::vector<Hostile> hostile_tables() {
  const std::string good = "a, (1), (2x1), CPU, 0\n";
  std::string wide = "a, (1), (";
  for (int k = 0; k < 300; ++k) wide += "1x";
  return {
      {"empty", "", "the table has no rows", "line 1, column 1"},
      {"unfinished", "a, (1), (2x1), CPU, 0", "the last row does not end", "line 1, column 22"},
      {"cut", good + "b, (1), (2x", "the last row does not end", "line 2, column 12"},
      {"few fields", good + "b, (1), CPU, 0\n", "a row has too few fields", "line 2, column 15"},
      {"empty line", good + "\nb, (1), (2x1), CPU, 0\n", "a line is empty", "line 2, column 1"},
      {"carriage return", "a, (1), (2x1), CPU, 0\r\n", "carriage return", "line 1, column 22"},
      {"empty field", "a, , (2x1), CPU, 0\n", "a field is empty", "line 1, column 4"},
      {"no device", "a, (1), (2x1), gpu, 0\n", "the device has no type", "line 1, column 16"},
      {"bad index", "a, (1), (2x1), CPU, x\n", "the device's index", "line 1, column 21"},
      {"huge index", "a, (1), (2x1), CPU, 99999999999999999999\n", "the device's index",
       "line 1, column 21"},
      {"leading zero", "a, (1), (02x1), CPU, 0\n", "an extent", "line 1, column 10"},
      {"negative", "a, (1), (-2x1), CPU, 0\n", "an extent", "line 1, column 10"},
      {"no digits", "a, (1), (2x), CPU, 0\n", "an extent", "line 1, column 12"},
      {"single extent", "a, (1), (2), CPU, 0\n", "a shape has a single extent",
       "line 1, column 10"},
      {"large", "a, (1), (4294967296x4294967296), CPU, 0\n", "a shape is too large",
       "line 1, column 21"},
      {"large behind zero", "a, (1), (0x4294967296x4294967296), CPU, 0\n", "too large",
       "line 1, column 23"},
      {"deep", wide + "1), CPU, 0\n", "a shape is too large", "line 1,"},
      {"no parentheses", "a, (1), 2x1, CPU, 0\n", "not a shape", "line 1, column 9"},
      {"element", "a, (1), (int33 2x1), CPU, 0\n", "no element type", "line 1, column 10"},
      {"float32", "a, (1), (float32 2x1), CPU, 0\n", "no element type", "line 1, column 10"},
      {"name", "a b, (1), (2x1), CPU, 0\n", "a character that TensorFlow does not allow",
       "line 1, column 2"},
      {"twice", good + good, "two rows are called 'a'", "line 2, column 1"},
      {"unsorted", "b, (1), (2x1), CPU, 0\n" + good, "not sorted by name", "line 2, column 1"},
      {"control edge", good + "b, ^c, (2x1), CPU, 0\n", "a control edge comes from 'c'",
       "line 2, column 5"},
      {"circle", "a, ^b, (2x1), CPU, 0\nb, ^a, (2x1), CPU, 0\n", "control edges run in a circle",
       "line 1, column 5"},
      {"own circle", "a, ^a, (2x1), CPU, 0\n", "control edges run in a circle", "line 1, column 5"},
      {"data behind control", good + "b, ^a, (2x1), ^a, (2x1), CPU, 0\n", "a control edge follows",
       "line 2, column 15"},
      {"stream", good + "b:Relu, (no input), (no output), GPU, 0\n", "a stream's row is of 'b'",
       "line 2, column 1"},
      {"stream's shape", good + "a:Relu, (2x1), (no output), GPU, 0\n",
       "a stream's row has tensors", "line 2, column 1"},
      {"fetch", "_retval_b_0_0, (2x1), (no output), CPU, 0\n" + good, "a fetch is of 'b'",
       "line 1, column 1"},
      {"fetch without number", "_retval_b, (2x1), (no output), CPU, 0\n" + good, "port and number",
       "line 1, column 1"},
      {"fetch of nothing", "_retval_a_0_0, (1), (2x1), CPU, 0\n" + good,
       "a fetch does not have one input", "line 1, column 1"},
      {"huge port", "_retval_a_99999999999999999999_0, (2x1), (no output), CPU, 0\n" + good,
       "the port", "line 1, column 11"},
      {"copy", good + "edge_1_b:MEMCPYDtoH, (no input), (output 8 bytes), GPU, 0\n",
       "a copy is of 'b'", "line 2, column 1"},
      {"copy's kind", good + "edge_1_a:MEMCPYDtoX, (no input), (output 8 bytes), GPU, 0\n",
       "no copy is of that kind", "line 2, column 16"},
      {"copy's bytes", good + "edge_1_a:MEMCPYDtoH, (no input), (output x bytes), GPU, 0\n",
       "the bytes of a copy", "line 2, column 42"},
      {"copy's edge", good + "edge_x_a:MEMCPYDtoH, (no input), (output 8 bytes), GPU, 0\n",
       "the edge of a copy", "line 2, column 6"},
      {"copy's shape", good + "edge_1_a:MEMCPYDtoH, (2x1), (no output), GPU, 0\n",
       "a copy does not just tell its bytes", "line 2, column 1"},
      {"no inputs told", good + "b, (2x1), CPU, 0, 0\n", "the device has no type",
       "line 2, column 16"},
      {"no outputs", good + "b, ^a, ^a, CPU, 0\n", "a row has no outputs", "line 2, column 1"},
      {"two ends", good + "b, (1), (no output), (2x1), CPU, 0\n", "(no output) is not the last",
       "line 2, column 9"},
      {"feed", "_arg_x_0_0, (2x1), (no output), CPU, 0\n", "a feed does not have one output",
       "line 1, column 1"},
  };
}

TEST(TensorScope, RefusesOtherTexts) {
  for (const Hostile& hostile : hostile_tables()) {
    try {
      read_document(hostile.text);
      ADD_FAILURE() << hostile.name << ": an error was expected";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(hostile.part), std::string::npos) << hostile.name << ": " << message;
      EXPECT_NE(error.place().find(hostile.place), std::string::npos)
          << hostile.name << ": " << message;
    }
  }
}

TEST(TensorScope, TruncatedTablesAreRefusedOrComplete) {
  const std::string text = read_fixture(small_step);
  for (std::size_t length = 0; length < text.size(); length += 7) {
    const std::string prefix = text.substr(0, length);
    try {
      EXPECT_EQ(read_document(prefix)->text(""), prefix);
    } catch (const Error& error) {
      EXPECT_NE(error.place().find("line "), std::string::npos);
    }
  }
}

TEST(TensorScope, ListsAllUnsupportedRows) {
  const std::string text =
      "a, (1), (resource 1), GPU, 0\nb, (2x2), (2x2), GPU, 0\nb:Fancy, (no input), (no output), "
      "GPU, 0\n"
      "c, (2x2), (2x2), GPU, 0\nc:Fancy, (no input), (no output), GPU, 0\nd, (2x3), (2x2), (4x4), "
      "GPU, 0\n";
  try {
    read_document(text)->graph();
    FAIL() << "an error was expected";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    const std::string message = error.what();
    EXPECT_NE(message.find("3 things are not supported"), std::string::npos) << message;
    EXPECT_NE(message.find("Fancy (2 times)"), std::string::npos) << message;
  }
}

TEST(TensorScope, ValuesWithoutProducerAreInputs) {
  const std::string text =
      "_retval_conv1_0_0, (1x4x4x8), (no output), CPU, 0\nconv1, (1x4x4x8), (1x4x4x8), CPU, 0\n"
      "conv1/Conv2D, (1x8x8x3), (3x3x3x8), (1x4x4x8), CPU, 0\nconv1/weights, (1), (3x3x3x8), CPU, "
      "0\n";
  const auto document = read_document(text);
  const Graph graph = document->graph();
  ASSERT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.value(graph.inputs()[0]).name, "conv1/Conv2D/input_0");
  EXPECT_NE(section_text(document->describe()).find("becomes an input of the graph"),
            std::string::npos);
  // `check` reports it: a table has a row for every value that is read.
  EXPECT_EQ(document->check().mismatches().size(), 1u);
}

// A chain of the depth and width of large networks: the reader is linear and does not recurse.
TEST(TensorScope, LongTables) {
  std::vector<std::string> lines{"in, (1), (8x8), GPU, 0"};
  for (int k = 10000; k < 20000; ++k) {
    lines.push_back(concat("n", k, ", (8x8), (8x8), GPU, 0"));
    lines.push_back(concat("n", k, ":Relu, (no input), (no output), GPU, 0"));
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const auto document = read_document(text);
  EXPECT_EQ(document->text(""), text);
  EXPECT_LE(document->check().mismatches().size(), 1u);  // the last value is unread
  EXPECT_EQ(document->graph().node_count(), 10001u);
}

// Bytes changed at random: an Error, or a document that supports every operation.
TEST(TensorScope, SurvivesDamage) {
  std::mt19937 random(7);
  const documents::DocumentFormat& format = *documents::find_document_format("tensorscope");
  for (const char* fixture : {small_step, two_gpus}) {
    const std::string text = read_fixture(fixture);
    for (int k = 0; k < 1500; ++k) {
      std::string damaged = text;
      const int changes = 1 + static_cast<int>(random() % 3);
      for (int change = 0; change < changes; ++change) {
        const std::size_t at = random() % damaged.size();
        const std::string_view letters = "0123456789x(),: ^/_abGC\n-";
        switch (random() % 3) {
          case 0:
            damaged[at] = letters[random() % letters.size()];
            break;
          case 1:
            damaged.erase(at, 1 + random() % 4);
            break;
          default:
            damaged.insert(at, 1, letters[random() % letters.size()]);
            break;
        }
      }
      try {
        const auto document = format.read(damaged, "damaged");
        EXPECT_EQ(document->text(""), damaged);
        document->check();
        document->describe();
        format.from_graph(document->graph())->text("");
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace tenon::documents::tensorscope::tensorscope_hostile_test
