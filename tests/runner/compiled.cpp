#include "compiled.h"

#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "numbers.h"
#include "program/verify.h"

#include <cstdlib>

namespace tenon::testing {
namespace {

std::size_t compared = 0;

// Compares sequences and optionals item by item.
std::string difference_of(const Datum& actual, const Datum& expected) {
  if (actual.kind() != expected.kind())
    return concat("got ", actual.type(), " for ", expected.type());
  if (expected.is_tensor()) {
    return difference(actual.tensor(), expected.tensor(), tolerance_of(expected.tensor().dtype()));
  }
  if (actual.items().size() != expected.items().size()) {
    return concat("got ", actual.items().size(), " items for ", expected.items().size());
  }
  for (std::size_t k = 0; k < expected.items().size(); ++k) {
    const std::string differs = difference_of(actual.items()[k], expected.items()[k]);
    if (!differs.empty()) return concat("item ", k, ": ", differs);
  }
  return "";
}

}  // namespace

std::size_t compiled_count() { return compared; }

std::string compare_compiled(const Graph& graph, const std::vector<Datum>& inputs,
                             const std::vector<Datum>& expected) {
  std::unique_ptr<CompiledModel> compiled;
  try {
    Program program = codegen::compile(graph, driver::cpu_options()).program;
    verify(program);
    compiled = std::make_unique<CompiledModel>(std::move(program), 2);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Unsupported) return "";
    throw;
  }
  const std::vector<Datum> outputs = compiled->run(inputs);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::string differs = difference_of(outputs[k], expected[k]);
    if (!differs.empty())
      return concat("compiled against the reference, result ", k, ": ", differs);
  }
  ++compared;
  return "";
}

}  // namespace tenon::testing
