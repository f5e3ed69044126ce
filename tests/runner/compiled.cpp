#include "compiled.h"

#include <cstdlib>

#include "base/error.h"
#include "codegen/compile.h"
#include "driver/compiled.h"
#include "numbers.h"

namespace tenon::testing {
namespace {

std::size_t compared = 0;

}  // namespace

std::size_t compiled_count() { return compared; }

std::string compare_compiled(const Graph& graph, const std::vector<Datum>& inputs, const std::vector<Datum>& expected) {
  std::unique_ptr<CompiledModel> compiled;
  try {
    compiled = std::make_unique<CompiledModel>(codegen::compile(graph), 2);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Unsupported) return "";
    throw;
  }
  const std::vector<Datum> outputs = compiled->run(inputs);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    Tolerance tolerance = tolerance_of(expected[k].tensor().dtype());
    const std::string differs = difference(outputs[k].tensor(), expected[k].tensor(), tolerance);
    if (!differs.empty()) return concat("compiled against the reference, result ", k, ": ", differs);
  }
  ++compared;
  return "";
}

}  // namespace tenon::testing
