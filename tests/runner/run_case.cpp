#include "base/error.h"
#include "base/text.h"
#include "check_gradient.h"
#include "compiled.h"
#include "expr/analysis.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "numbers.h"
#include "ops/definition/registry.h"
#include "passes/definition/pass.h"
#include "reference/evaluate.h"
#include "test_file.h"

#include <map>

namespace tenon::testing {
namespace {

// A body is a graph, then lines `name = constant` that give its inputs.
struct Body {
  Graph graph;
  std::map<std::string, Constant> inputs;
};

Body read_body(const TestCase& test) {
  Body body;
  std::vector<std::string> graph_lines;
  std::size_t k = 0;
  for (; k < test.body.size(); ++k) {
    graph_lines.push_back(test.body[k]);
    if (test.body[k].rfind('}', 0) == 0) break;
  }
  body.graph = parse_graph(text_of(graph_lines), all_ops(), "graph");
  verify(body.graph);
  for (++k; k < test.body.size(); ++k) {
    const std::string& line = test.body[k];
    const std::size_t equals = line.find(" = ");
    if (equals == std::string::npos) throw Error("expected 'name = constant'").got(line);
    body.inputs.emplace(line.substr(0, equals), parse_constant(line.substr(equals + 3)));
  }
  return body;
}

std::string print_datum(const Datum& datum) {
  if (datum.is_tensor()) return print(Constant(datum.tensor()));
  std::string text = datum.kind() == Type::Kind::Sequence ? "seq(" : "optional(";
  for (std::size_t k = 0; k < datum.items().size(); ++k) {
    text += (k ? "; " : "") + print_datum(datum.items()[k]);
  }
  return text + ")";
}

std::vector<Datum> inputs_of(const Body& body) {
  std::vector<Datum> inputs;
  for (ValueId input : body.graph.inputs()) {
    const std::string& name = body.graph.value(input).name;
    const auto found = body.inputs.find(name);
    if (found == body.inputs.end()) throw Error(concat("the case gives no input '", name, "'"));
    inputs.push_back(found->second.materialise());
  }
  return inputs;
}

Outcome run_eval(const TestCase& test) {
  const Body body = read_body(test);
  const std::vector<Datum> inputs = inputs_of(body);
  const std::vector<Datum> outputs = reference::evaluate(body.graph, inputs);
  Outcome outcome;
  bool is_close = outputs.size() == test.expected.size();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::string& name = body.graph.value(body.graph.outputs()[k]).name;
    outcome.actual.push_back(concat(name, " = ", print_datum(outputs[k])));
    if (!is_close || outcome.actual.back() == test.expected[k]) continue;
    const std::string prefix = name + " = ";
    if (test.expected[k].rfind(prefix, 0) != 0 || !outputs[k].is_tensor()) {
      is_close = false;
    } else {
      const Tensor expected = parse_constant(test.expected[k].substr(prefix.size())).materialise();
      is_close = difference(outputs[k].tensor(), expected, tolerance_of(expected.dtype())).empty();
    }
  }
  if (is_close) {
    outcome.actual = test.expected;
  } else {
    outcome.failure = "computed\n" + text_of(outcome.actual);
  }
  return outcome;
}

Outcome exact(const TestCase& test, std::vector<std::string> actual) {
  Outcome outcome{"", std::move(actual)};
  if (outcome.actual != test.expected) outcome.failure = "got\n" + text_of(outcome.actual);
  return outcome;
}

std::vector<std::string> types_of(const Graph& graph) {
  std::vector<std::string> lines;
  for (NodeId id : graph.nodes_in_order()) {
    for (ValueId result : graph.node(id).results) {
      if (!result) continue;
      std::string line =
          concat(print_name(graph.value(result).name), ": ", graph.value(result).type);
      if (const Dims* known = graph.known_elements(result)) line += concat(" = ", *known);
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::vector<std::string> footprints_of(const Graph& graph) {
  std::vector<std::string> lines;
  for (NodeId id : graph.nodes_in_order()) {
    const Footprint footprint = footprint_of(graph, id);
    lines.push_back(concat(graph.value(graph.node(id).results.front()).name, ": ",
                           fusion_kind(graph, id), ", ", footprint.flops, " flops, ",
                           footprint.bytes_read, " bytes in, ", footprint.bytes_written,
                           " bytes out"));
  }
  return lines;
}

// `run fuse, order` or, with options, `run fuse.mode=relay, fuse`.
Graph run_passes(const TestCase& test, Graph graph) {
  passes::PassOptions options;
  for (const std::string& word : split(test.arguments, ',')) {
    if (word.find('=') != std::string::npos) {
      passes::set_option(options, word);
      continue;
    }
    graph = passes::find_pass(trim(word)).run(std::move(graph), options);
    verify(graph);
  }
  return graph;
}

// `---- same as` requires that both graphs become equal; otherwise the expectation is the graph's
// text.
Outcome run_rewrite(const TestCase& test) {
  const std::string actual = print(run_passes(test, read_body(test).graph));
  if (test.separator != "same as") return exact(test, lines_of(actual));
  const Graph other = parse_graph(text_of(test.expected), all_ops(), "graph");
  const std::string expected = print(run_passes(test, other));
  return {actual == expected ? "" : "one becomes\n" + actual + "the other\n" + expected, {}};
}

Outcome run_directive(const TestCase& test) {
  if (test.directive == "check") return {check_op(test), {}};
  if (test.directive == "eval") return run_eval(test);
  if (test.directive == "parse") return exact(test, lines_of(print(read_body(test).graph)));
  if (test.directive == "types") return exact(test, types_of(read_body(test).graph));
  if (test.directive == "footprint") return exact(test, footprints_of(read_body(test).graph));
  if (test.directive == "run") return run_rewrite(test);
  if (test.directive == "gradient") {
    const Body body = read_body(test);
    return {gradient_failure(body.graph, inputs_of(body)), {}};
  }
  const std::vector<std::string> known = {"check", "eval",      "gradient", "parse",
                                          "types", "footprint", "run"};
  throw Error(concat("no directive is called '", test.directive, "'"))
      .hint(suggest_name(test.directive, known));
}

}  // namespace

Outcome run_case(const TestCase& test) {
  try {
    Outcome outcome = run_directive(test);
    if (test.separator == "error") outcome.failure = "an error was expected, but it went through";
    return outcome;
  } catch (const Error& error) {
    if (test.separator == "error") return exact(test, lines_of(concat("error: ", error.what())));
    return {concat("error: ", error.what()), {}};
  } catch (const std::exception& error) {
    return {error.what(), {}};
  }
}

std::string run_compiled_case(const TestCase& test) {
  if (test.separator == "error") return "";
  try {
    if (test.directive == "check") return check_compiled_op(test);
    if (test.directive != "eval" && test.directive != "gradient") return "";
    const Body body = read_body(test);
    const std::vector<Datum> inputs = inputs_of(body);
    if (test.directive == "gradient") {
      const Graph backward = with_gradients(body.graph, inputs);
      return compare_compiled(backward, inputs, reference::evaluate(backward, inputs));
    }
    return compare_compiled(body.graph, inputs, reference::evaluate(body.graph, inputs));
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace tenon::testing
