#include "documents/document.h"
#include "documents/same_network.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "testing/random_graph/random_graph.h"
#include "unit/documents/mutation.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

namespace tenon::document_return_test {
namespace {

// Round trips of every format: the output of `convert` passes `check` and converts back to the same
// network, or the conversion is refused with a reason. Runs zoo networks, documents and a sample of
// random graphs; tools/round_trip prints the table of all (TENON_ROUND_TRIP: number of random
// graphs).
struct Cell {
  std::size_t tried = 0, written = 0, clean = 0, equal = 0;
};

class TensorScopeTable {
 public:
  void add(const std::string& kind, const std::string& name, const Graph& graph) {
    for (const documents::DocumentFormat& format : documents::document_formats())
      try_format(kind, name, graph, format);
  }

  void print() const {
    for (const auto& [place, cell] : cells_) {
      std::cout << place.first << "  " << place.second << ": " << cell.tried << " tried, "
                << cell.written << " written, " << cell.clean << " check clean, " << cell.equal
                << " equal after return\n";
    }
    for (const auto& [reason, count] : refusals_)
      std::cout << "  " << count << "  " << reason << "\n";
  }

  const std::map<std::pair<std::string, std::string>, Cell>& cells() const { return cells_; }

 private:
  void try_format(const std::string& kind, const std::string& name, const Graph& graph,
                  const documents::DocumentFormat& format) {
    Cell& cell = cells_[{format.name, kind}];
    ++cell.tried;
    documents::WrittenDocument written;
    try {
      written = format.write(graph);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Unsupported) << format.name << " " << name << error.what();
      if (std::getenv("TENON_ROUND_TRIP_REASONS") != nullptr)
        std::cout << format.name << " " << name << ": " << error.what() << "\n";
      ++refusals_[concat(format.name, ": ", error.summary())];
      return;
    }
    ++cell.written;
    try {
      const auto again = format.read(written.document->text(""), name);
      cell.clean += again->check().mismatches().empty();
      Graph came_back = again->graph();
      documents::set_values(came_back, documents::values_graph(written));
      const documents::NetworkDifference found = documents::difference(graph, came_back);
      cell.equal += found.is_same() && found.constants.empty();
      EXPECT_EQ(found.first, "") << format.name << " " << name;
      EXPECT_TRUE(found.constants.empty()) << format.name << " " << name;
    } catch (const Error& error) {
      ADD_FAILURE() << format.name << " " << name << ": " << error.what();
    }
  }

  std::map<std::pair<std::string, std::string>, Cell> cells_;
  std::map<std::string, std::size_t> refusals_;
};

TEST(DocumentReturn, RoundTrips) {
  const char* wanted = std::getenv("TENON_ROUND_TRIP");
  const int random_count = wanted == nullptr ? 12 : std::atoi(wanted);
  const char* first = std::getenv("TENON_ROUND_TRIP_FIRST");
  const int begin = first == nullptr ? 0 : std::atoi(first);
  TensorScopeTable table;
  for (const zoo::Network& network : zoo::networks()) {
    const bool is_small = network.name == "mlp" || network.name == "alexnet" ||
                          network.name == "lstm" || network.name == "squeezenet";
    if (begin == 0 && (wanted != nullptr || is_small))
      table.add("zoo", network.name, zoo::build(network.name));
  }
  for (const char* seed : {"aitemplate_conv_add.graph.txt", "megengine_resnet50.profile.json",
                           "resnet50_v1.after.relay", "resnet50_v1.before.relay",
                           "tensorscope_alexnet.nodes.txt", "unet_chainer.graph.txt"}) {
    if (begin != 0 || (wanted == nullptr && seed[0] != 'a' && seed[0] != 't')) continue;
    const std::string text = read_fixture(seed);
    for (const documents::DocumentFormat& format : documents::document_formats()) {
      if (format.recognises(std::string_view(text).substr(0, 4096)))
        table.add("seeds", seed, format.read(text, seed)->graph());
    }
  }
  for (int k = begin; k < begin + random_count; ++k)
    table.add("random", concat("random:", k), testing::random_graph(std::to_string(k)));
  if (wanted != nullptr) table.print();
  for (const auto& [place, cell] : table.cells()) {
    EXPECT_EQ(cell.clean, cell.written) << place.first << " " << place.second;
    EXPECT_EQ(cell.equal, cell.written) << place.first << " " << place.second;
    EXPECT_GT(cell.written, 0u) << place.first << " " << place.second;
  }
}

// Two constants of one type are distinguished by edges only, because documents omit their elements.
TEST(DocumentReturn, DistinguishesConstantsOfOneType) {
  TensorScopeTable table;
  table.add("text", "two constants",
            parse_graph(R"(graph net () {
  a = constant f32[5] [-1.05, 0.1, -0.43, -1.8, 0.42]
  squares = mul(a, a)
  mean = reduce_mean(squares) {axes = [-1]}
  tiny = constant f32[] 1e-06
  sum = add(mean, tiny)
  root = sqrt(sum)
  scaled = div(a, root)
  b = constant f32[5] [0.65, 0.8, 0.31, -1.66, -1.04]
  y = mul(scaled, b)
  return sum, y
}
)",
                        all_ops()));
  for (const auto& [place, cell] : table.cells()) {
    EXPECT_EQ(cell.equal, 1u) << place.first;
  }
}

// Bytes, words and lines changed at random: an Error, or a document that supports every operation.
TEST(DocumentMutants, AreRefusedOrUsable) {
  const char* wanted = std::getenv("TENON_DOCUMENT_MUTANTS");
  const int count = wanted == nullptr ? 60 : std::atoi(wanted);
  std::uint64_t state = 20240607;
  const auto random = [&](std::size_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(state >> 33) % std::max<std::size_t>(below, 1);
  };
  const char* fixtures[] = {"aitemplate_conv_add.graph.txt",
                            "aitemplate_dynamic_batch.graph.txt",
                            "aitemplate_strided_gemm.graph.txt",
                            "megengine_static_plans.profile.json",
                            "relay_branches.relay",
                            "relay_control.relay",
                            "mlp_chainer.graph.txt",
                            "residual_chainer.graph.txt",
                            "tensorscope_small_step.nodes.txt",
                            "tensorscope_two_gpus.nodes.txt"};
  std::size_t read = 0, made = 0;
  for (int k = 0; k < count; ++k) {
    std::string text = read_fixture(fixtures[random(std::size(fixtures))]);
    const auto formats = documents::document_formats();
    const auto format =
        std::find_if(formats.begin(), formats.end(), [&](const documents::DocumentFormat& each) {
          return each.recognises(std::string_view(text).substr(0, 4096));
        });
    ASSERT_NE(format, formats.end());
    for (std::size_t changes = 1 + random(3); changes > 0; --changes) {
      const std::size_t at = random(text.size()), length = 1 + random(12);
      switch (random(5)) {
        case 0:
          text[at] = static_cast<char>(random(256));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(random(text.size()), length));
          break;
        case 3: {  // a line, or the text between two commas
          const char cut = random(2) == 0 ? '\n' : ',';
          const std::size_t begin = text.rfind(cut, at), end = text.find(cut, at);
          if (begin != std::string::npos && end != std::string::npos)
            text.erase(begin, end - begin);
          break;
        }
        default: {  // another number
          const std::size_t digit = text.find_first_of("0123456789", at);
          if (digit != std::string::npos) text[digit] = static_cast<char>('0' + random(10));
        }
      }
    }
    try {
      const std::unique_ptr<documents::Document> document = format->read(text, "mutant");
      ++read;
      document->check();
      document->describe();
      format->read(document->text(""), "again");
      const Graph graph = document->graph();
      ++made;
      if (graph.node_count() < 60) formats[random(formats.size())].write(graph);
    } catch (const Error&) {
      continue;
    }
  }
  if (wanted != nullptr)
    std::cout << count << " mutants: " << read << " read, " << made << " became graphs\n";
  EXPECT_GT(made, 0u);
}

}  // namespace
}  // namespace tenon::document_return_test
