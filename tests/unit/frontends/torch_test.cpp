#include "base/error.h"
#include "frontends/numpy/zip.h"
#include "frontends/torch/import.h"
#include "frontends/torch/sym_expr.h"
#include "ir/text.h"
#include "unit/documents/mutation.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

namespace tenon::frontends::torch::torch_test {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Files files_of(const std::string& archive) {
  numpy::ZipReader reader(bytes_of(archive));
  Files files;
  for (const numpy::ZipEntry& entry : reader.entries()) {
    const auto content = reader.unpacked(entry).bytes;
    files.emplace_back(entry.name,
                       std::string(reinterpret_cast<const char*>(content.data()), content.size()));
  }
  return files;
}

std::string archive_of(const Files& files) {
  std::ostringstream out;
  numpy::ZipWriter zip(out);
  for (const auto& [name, content] : files) zip.add(name, bytes_of(content));
  zip.finish();
  return out.str();
}

std::string& program_in(Files& files) {
  for (auto& [name, content] : files) {
    if (name.find("/models/") != std::string::npos) return content;
  }
  throw std::runtime_error("the fixture has no program");
}

// Reads a fixture after its program was edited.
template <class Edit>
Graph edited(const std::string& name, const Edit& edit) {
  Files files = files_of(read_fixture("torch/" + name));
  edit(program_in(files));
  return import_torch(bytes_of(archive_of(files)), nullptr, "model.pt2");
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

TEST(TorchImport, KeepsSymbolsWithTheirRanges) {
  const Graph graph = import_torch("tests/fixtures/torch/encoder.pt2");
  const Dims dims = graph.value(graph.inputs().front()).type.tensor().dims;
  EXPECT_EQ(dims[0].range(), (Range{1, 64}));
  EXPECT_EQ(dims[1].range(), (Range{2, 512}));
  EXPECT_EQ(dims[2], Dim(16));
  EXPECT_EQ(graph.value(graph.outputs().front()).type.tensor().dims, dims);
}

TEST(TorchImport, NamesNestedInputsAndOutputs) {
  const Graph graph = import_torch("tests/fixtures/torch/nested.pt2");
  std::string inputs, outputs;
  for (const ValueId id : graph.inputs()) inputs += graph.value(id).name + " ";
  for (const ValueId id : graph.outputs()) outputs += graph.value(id).name + " ";
  EXPECT_EQ(inputs, "named_a named_b pair_0 pair_1 ");
  EXPECT_EQ(outputs, "y z_0 z_1_0 z_1_1 ");
}

TEST(TorchImport, ListsAllUnsupportedOperatorsAtOnce) {
  const std::string text = error_text([] {
    edited("convnet.pt2", [](std::string& program) {
      replace(program, "torch.ops.aten.linear.default", "torch.ops.aten.unheard.default");
      replace(program, "torch.ops.aten.max_pool2d.default", "torch.ops.mine.pool.default");
    });
  });
  EXPECT_EQ(text,
            "cannot import the model: 2 things are not supported\n"
            "  - mine.pool (node 'max_pool2d')\n"
            "  - unheard (node 'linear')\n"
            "  at        model.pt2");
}

TEST(TorchImport, RefusesOtherVersionsAndFiles) {
  const auto with_version = [](std::string& program) {
    replace(program, "\"schema_version\":{\"major\":8", "\"schema_version\":{\"major\":11");
  };
  EXPECT_EQ(error_summary([&] { edited("convnet.pt2", with_version); }),
            "version 11 of PyTorch's export schema is not known");
  const std::string other = archive_of({{"a/b.npy", "x"}});
  EXPECT_EQ(error_summary([&] { import_torch(bytes_of(other), nullptr, "m"); }),
            "the archive is not one exported program");
  const std::string early = archive_of({{"m/serialized_state_dict.pt", "x"}});
  EXPECT_EQ(error_summary([&] { import_torch(bytes_of(early), nullptr, "m"); }),
            "the archive has the layout of PyTorch before 2.9");
}

TEST(TorchImport, ChecksStatedExtents) {
  EXPECT_EQ(error_summary([] {
              edited("convnet.pt2", [](std::string& program) {
                replace(program, "\"name\":\"stride\",\"arg\":{\"as_ints\":[2,2]}",
                        "\"name\":\"stride\",\"arg\":{\"as_ints\":[3,2]}");
              });
            }),
            "the result has other extents than the program states");
}

// Programs with random changes import or are refused.
TEST(TorchImport, SurvivesChangedPrograms) {
  std::mt19937 random(7);
  for (const char* name : {"convnet.pt2", "indices.pt2", "written.pt2", "windows.pt2", "gru.pt2"}) {
    Files files = files_of(read_fixture(std::string("torch/") + name));
    const std::string program = program_in(files);
    for (int round = 0; round < 150; ++round) {
      std::string& text = program_in(files) = program;
      for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
        const std::size_t at = random() % text.size();
        if (const auto digit = text.find_first_of("0123456789", at);
            round % 3 == 0 && digit != std::string::npos) {
          text.replace(digit, 1, std::to_string(random() % 2 == 0 ? random() : random() % 9));
        } else if (round % 3 == 1) {
          text.erase(at, random() % 20);
        } else {
          text.insert(at, text.substr(random() % text.size(), random() % 12));
        }
      }
      const std::string archive = archive_of(files);
      try {
        import_torch(bytes_of(archive), nullptr, "changed");
      } catch (const Error&) {
        continue;
      }
    }
  }
}

TEST(SymExpr, ParsesSympyAndArithmetic) {
  const SymbolRanges ranges = {{"s0", {2, 8}}};
  const Dim s = Dim::symbol("s0", {2, 8});
  EXPECT_EQ(
      parse_sym_expr("Add(Mul(Integer(2), Symbol('s0', positive=True)), Integer(-1))", ranges),
      s * 2 - 1);
  EXPECT_EQ(parse_sym_expr("FloorDiv(Symbol('s0', integer=True), Integer(4))", ranges),
            floor_div(s, 4));
  EXPECT_EQ(parse_sym_expr("Pow(Symbol('s0'), Integer(2))", ranges), s * s);
  EXPECT_EQ(parse_sym_expr("Max(Integer(3), Symbol('s0'))", ranges), max(Dim(3), s));
  EXPECT_EQ(parse_sym_expr("2*s0 + 1", ranges), s * 2 + 1);
  EXPECT_EQ(error_summary([&] { parse_sym_expr("Sin(Symbol('s0'))", ranges); }),
            "extents cannot be computed by 'Sin'");
  EXPECT_EQ(error_summary([&] { parse_sym_expr("Add(Integer(1)", ranges); }),
            "an extent's expression is malformed");
}

}  // namespace
}  // namespace tenon::frontends::torch::torch_test
