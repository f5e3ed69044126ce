// Fuzz target: values of command-line arguments. Any text parses or ends in an Error. The first
// byte selects the kind of argument; dims, types and constants must round-trip.
#include "base/error.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "zoo/zoo.h"

#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using namespace tenon;

// Opening files is out of scope, and a long fuzzing run must not find any.
bool names_file(const std::string& text) { return text.find('@') != std::string::npos; }

// Networks are large, and the largest take seconds: only the smallest is built.
bool names_small_network(const std::string& text) { return text.rfind("mlp", 0) == 0; }

// Larger weights and inputs would only measure the time to fill them.
bool is_small(const std::map<std::string, Shape>& shapes) {
  for (const auto& [name, shape] : shapes) {
    if (checked_element_count(shape) > 1 << 16) return false;
  }
  return true;
}

void read_as_inputs(const std::string& text) {
  static const Graph graph = parse_graph(
      "graph (x: f32[N, 2], \"a:b\": i64[N], s: string[]) { y = relu(x) return y }", all_ops());
  const std::size_t split = text.find(' ');
  const std::string described = text.substr(0, split);
  const std::map<std::string, Shape> shapes = models::parse_shapes(
      split == std::string::npos ? std::vector<std::string>{}
                                 : std::vector<std::string>{text.substr(split + 1)});
  if (names_file(described) || !is_small(models::input_shapes(graph, shapes))) return;
  models::read_inputs(graph, {described}, shapes);
}

void read_as_attributes(const std::string& text) {
  const std::size_t brace = text.find('{');
  if (const OpDef* op = all_ops().find(text.substr(0, brace))) {
    parse_attributes(brace == std::string::npos ? "" : text.substr(brace), *op);
  }
}

template <class Value, class Print, class Parse>
void must_come_back(const Value& value, Print print_it, Parse parse_it) {
  const std::string text = print_it(value);
  try {
    if (print_it(parse_it(text)) != text) std::abort();
  } catch (const Error&) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0]) {
      case 's':
        models::parse_shapes({text});
        break;
      case 'i':
        read_as_inputs(text);
        break;
      case 'z':
        if (names_small_network(text)) zoo::build(text);
        break;
      case 'd':
        must_come_back(
            parse_dim(text), [](const Dim& dim) { return to_string(dim); },
            [](const std::string& printed) { return parse_dim(printed); });
        break;
      case 't':
        must_come_back(
            parse_type(text), [](const Type& type) { return to_string(type); },
            [](const std::string& printed) { return parse_type(printed); });
        break;
      case 'c':
        must_come_back(
            parse_constant(text), [](const Constant& constant) { return print(constant); },
            [](const std::string& printed) { return parse_constant(printed); });
        break;
      case 'a':
        read_as_attributes(text);
        break;
      default:
        break;
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
