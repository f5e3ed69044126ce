#include "base/error.h"
#include "codegen/packed_tables.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

namespace tenon::packed_tables_test {
namespace {

// An embedding table with tied output weights: rows are looked up, and a product reads all of it.
// 1003 rows leave the last panel half empty.
constexpr std::int64_t kRows = 1003, kColumns = 48;
std::string words(const std::string& ids, const std::string& more, const std::string& outputs) {
  return "graph (ids: i64[" + ids + R"(]) {
  table = constant f32[1003, 48] normal(seed = 5, mean = 0.0, deviation = 1.0)
  rows = gather(table, ids) {axis = 0}
  scores = einsum(rows, table) {equation = "nc,rc->nr"}
)" + more +
         "  return " + outputs + "\n}\n";
}

struct Compiled {
  explicit Compiled(const std::string& text)
      : graph(parse_graph(text, all_ops())),
        program(codegen::compile(graph, driver::cpu_options()).program) {}
  Graph graph;
  Program program;
  std::int64_t tables() const {
    return static_cast<std::int64_t>(program.constant_bytes) / (kRows * kColumns * 4);
  }
};

Datum ids_of(const std::vector<std::int64_t>& ids) { return Datum(Tensor::of_integers(ids)); }

TEST(PackedTables, StoresTheTableOnce) {
  for (const char* extent : {"6", "N"}) {
    const Compiled made(words(extent, "", "rows, scores"));
    EXPECT_EQ(made.tables(), 1) << extent;
    const Datum ids = ids_of({0, 31, 32, -1, 1002, -1003});
    const std::vector<Datum> expected = reference::evaluate(made.graph, {ids});
    for (const int threads : {1, 2}) {
      CompiledModel model(made.program, threads);
      EXPECT_TRUE(identical(model.run({ids})[0].tensor(), expected[0].tensor())) << extent;
    }
  }
}

// Padding rows of the last panel are not part of the table.
TEST(PackedTables, RefusesRowsOutOfRange) {
  const Compiled made(words("1", "", "rows, scores"));
  ASSERT_EQ(made.tables(), 1);
  CompiledModel model(made.program, 1);
  for (const std::int64_t id :
       {kRows, kRows + 4, std::int64_t{5000}, -kRows - 1, std::int64_t{1} << 60})
    EXPECT_THROW(model.run({ids_of({id})}), Error) << id;
  EXPECT_NO_THROW(model.run({ids_of({kRows - 1})}));
}

// Two lookups in one kernel of which one table has no packed form; several lookups of one table.
TEST(PackedTables, KeepsUnpackedTables) {
  const Compiled made(
      words("3", R"(  other = constant f32[1003, 48] normal(seed = 6, mean = 0.0, deviation = 1.0)
  plain = gather(other, ids) {axis = 0}
  again = gather(table, ids) {axis = 0}
  twice = neg(again)
)",
            "rows, scores, plain, twice"));
  EXPECT_EQ(made.tables(), 2);
  CompiledModel model(made.program, 1);
  const Datum ids = ids_of({7, 1002, -5});
  const std::vector<Datum> expected = reference::evaluate(made.graph, {ids}),
                           actual = model.run({ids});
  for (const std::size_t k : {0, 2, 3})
    EXPECT_TRUE(identical(actual[k].tensor(), expected[k].tensor())) << k;
}

TEST(PackedTables, KeepsACopyForFullReads) {
  EXPECT_EQ(Compiled(words("3", "  doubled = add(table, table)\n", "rows, scores, table")).tables(),
            2);
  // Every element of a packed row is in another cache line: many lookups are faster in a second
  // copy.
  EXPECT_EQ(Compiled(words("400", "", "rows, scores")).tables(), 2);
}

}  // namespace
}  // namespace tenon::packed_tables_test
