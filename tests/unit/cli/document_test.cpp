#include "documents/document.h"
#include "models/inputs.h"
#include "models/model.h"
#include "reference/evaluate.h"
#include "unit/cli/called.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace tenon::cli::document_test {
namespace {

using Documents = WithFolder;

// A document that only describes its weights is saved with a weights file next to it, and the
// network computes the same.
TEST_F(Documents, SaveWeightsToASeparateFile) {
  const Graph graph = zoo::build("mlp?batch=2");
  const std::vector<Datum> inputs = models::random_inputs(graph, 1);
  const std::vector<Datum> wanted = reference::evaluate(graph, inputs);
  for (const documents::DocumentFormat& format : documents::document_formats()) {
    const std::string name = file("mlp." + format.name);
    ASSERT_EQ(call({"convert", "zoo:mlp?batch=2", "--to=" + format.name, "-o", name}).code, 0);
    EXPECT_EQ(call({"check", name}).code, 0) << format.name;
    const std::vector<Datum> got = reference::evaluate(models::load_model(name), inputs);
    ASSERT_EQ(got.size(), wanted.size());
    EXPECT_TRUE(identical(got[0].tensor(), wanted[0].tensor())) << format.name;
  }
  EXPECT_TRUE(std::filesystem::exists(models::values_path(file("mlp.chainer"))));
}

TEST_F(Documents, ShowPrintsNumbers) {
  const Called called = call({"show", "tests/fixtures/unet_chainer.graph.txt", "--json"});
  ASSERT_EQ(called.code, 0);
  const auto page = nlohmann::json::parse(called.out);
  std::vector<std::int64_t> peaks;
  for (const auto& section : page["sections"]) {
    for (const auto& row : section["rows"]) {
      if (row.contains("peak")) peaks.push_back(row["peak"].get<std::int64_t>());
    }
  }
  EXPECT_EQ(peaks, (std::vector<std::int64_t>{7'803'387'904, 7'277'658'112}));
}

TEST_F(Documents, PrintJson) {
  for (const char* command : {"show", "check"}) {
    const Called called = call({command, "tests/fixtures/mlp_chainer.graph.txt", "--json"});
    EXPECT_EQ(called.code, 0);
    EXPECT_TRUE(nlohmann::json::accept(called.out)) << command;
  }
}

TEST_F(Documents, UnknownTextReportsEachParsersError) {
  std::ofstream(file("letter.txt")) << "Dear reader,\nthis is no network.\n";
  const Called called = call({"check", file("letter.txt")});
  EXPECT_NE(called.code, 0);
  for (const char* part : {"of no format that is known", "relay: ", "megengine: ", "line 1"})
    EXPECT_TRUE(has(called.error, part)) << part << " in " << called.error;
}

}  // namespace
}  // namespace tenon::cli::document_test
