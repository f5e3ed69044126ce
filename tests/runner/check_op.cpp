#include "autodiff/differentiate.h"
#include "base/error.h"
#include "base/text.h"
#include "compiled.h"
#include "expr/analysis.h"
#include "expr/lowering.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "numbers.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "test_file.h"

#include <cmath>

namespace tenon::testing {
namespace {

// Above this number of operations the element-by-element evaluator is too slow for a test.
constexpr std::int64_t kPlainFlops = 200000;
constexpr std::int64_t kProbesPerOperand = 12;

struct Given {
  std::string name;
  Type type;
  double low, high;
  std::optional<Tensor> values;
};

struct Check {
  const OpDef* op = nullptr;
  Attributes attrs;
  std::vector<Given> operands;
  bool only_this_dtype = false, skip_gradient = false;
};

// "softmax {axis = -1}  x: f32[3, 4], i: i64[2] in [0, 3], s: i64[1] = [2]; f32 only; no gradient"
class CheckReader {
 public:
  explicit CheckReader(std::string_view text) : text_(text) {}

  Check read() {
    Check check;
    check.op = &find_op(word());
    skip_spaces();
    if (peek() == '{') check.attrs = parse_attributes(bracketed('{', '}'), *check.op);
    skip_spaces();
    while (at_ < text_.size() && peek() != ';') {
      check.operands.push_back(operand());
      skip_spaces();
      if (peek() == ',') ++at_;
      skip_spaces();
    }
    for (const std::string& part : split(text_.substr(at_), ';')) {
      const std::string_view option = trim(part);
      if (option == "f32 only")
        check.only_this_dtype = true;
      else if (option == "no gradient")
        check.skip_gradient = true;
      else if (!option.empty())
        throw Error(concat("no such option of a check: ", option));
    }
    return check;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_spaces() {
    while (peek() == ' ') ++at_;
  }
  std::string word() {
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_') ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string bracketed(char open, char close) {
    const std::size_t begin = at_;
    int depth = 0;
    do {
      if (at_ >= text_.size())
        throw Error(concat("a bracket is not closed: ", text_.substr(begin)));
      depth += peek() == open ? 1 : peek() == close ? -1 : 0;
      ++at_;
    } while (depth > 0);
    return std::string(text_.substr(begin, at_ - begin));
  }
  Given operand() {
    Given given{word(), {}, 0, 0, std::nullopt};
    skip_spaces();
    if (peek() != ':') throw Error(concat("expected 'name: type' at: ", text_.substr(at_)));
    ++at_;
    skip_spaces();
    const std::size_t begin = at_;
    word();
    bracketed('[', ']');
    if (peek() == '@') {
      ++at_;
      word();
    }
    const std::string type(text_.substr(begin, at_ - begin));
    given.type = parse_type(type);
    const bool counts = is_integer(given.type.tensor().dtype);
    given.low = counts ? 0 : -2;
    given.high = counts ? 5 : 2;
    if (given.type.tensor().dtype == DType::Bool) given.low = 0, given.high = 1;
    skip_spaces();
    if (text_.substr(at_, 3) == "in ") {
      at_ += 3;
      const std::string range = bracketed('[', ']');
      const std::vector<std::string> ends =
          split(std::string_view(range).substr(1, range.size() - 2), ',');
      if (ends.size() != 2) throw Error(concat("expected a range [low, high], got ", range));
      given.low = parse_real(trim(ends[0])).value();
      given.high = parse_real(trim(ends[1])).value();
    } else if (peek() == '=') {
      ++at_;
      skip_spaces();
      const std::string values = peek() == '[' ? bracketed('[', ']') : number();
      given.values = parse_constant(type + " " + values).materialise();
    }
    return given;
  }
  std::string number() {
    const std::size_t begin = at_;
    while (peek() != '\0' && peek() != ',' && peek() != ';') ++at_;
    return std::string(trim(text_.substr(begin, at_ - begin)));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// The operands by position, missing ones empty; repeated names go to a variadic operand.
std::vector<std::optional<Datum>> by_position(const Check& check,
                                              const std::vector<Tensor>& tensors) {
  std::vector<std::optional<Datum>> operands;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const auto position = check.op->operand_index(check.operands[k].name);
    if (!position)
      throw Error(concat(check.op->name, " has no operand '", check.operands[k].name, "'"));
    std::size_t place = *position;
    if (check.op->operands[place].is_variadic) place = std::max(place, operands.size());
    if (operands.size() <= place) operands.resize(place + 1);
    operands[place] = tensors[k];
  }
  return operands;
}

std::vector<Tensor> make_operands(const Check& check) {
  std::vector<Tensor> tensors;
  for (std::size_t k = 0; k < check.operands.size(); ++k) {
    const Given& given = check.operands[k];
    const TensorType& type = given.type.tensor();
    tensors.push_back(given.values ? *given.values
                                   : random_tensor(type.dtype, constants(type.dims), 77 + k,
                                                   given.low, given.high));
  }
  return tensors;
}

std::vector<Tensor> with_dtype(const std::vector<Tensor>& tensors, DType from, DType to) {
  std::vector<Tensor> converted;
  for (const Tensor& tensor : tensors) {
    converted.push_back(tensor.dtype() == from ? tensor.converted(to) : tensor);
  }
  return converted;
}

// A graph of the one node, with an input for each operand.
Graph make_graph(const Check& check, const std::vector<Tensor>& tensors) {
  Graph graph;
  const std::vector<std::optional<Datum>> operands = by_position(check, tensors);
  Graph::NewNode node;
  node.op = check.op;
  node.attrs = check.attrs;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k]) {
      node.operands.emplace_back();
      continue;
    }
    TensorType type = operands[k]->tensor().type();
    for (const Given& given : check.operands) {
      if (k < check.op->operands.size() && given.name == check.op->operands[k].name) {
        type.layout = given.type.tensor().layout;
      }
    }
    node.operands.push_back(graph.add_input(concat("in", k), type));
  }
  for (const ResultDef& result : check.op->results) node.results.push_back(result.name);
  const NodeId id = graph.add_node(std::move(node));
  for (ValueId result : graph.node(id).results) graph.add_output(result);
  verify(graph);
  return graph;
}

std::vector<Datum> inputs_of(const Check& check, const std::vector<Tensor>& tensors) {
  std::vector<Datum> inputs;
  for (const std::optional<Datum>& operand : by_position(check, tensors)) {
    if (operand) inputs.push_back(*operand);
  }
  return inputs;
}

std::vector<Tensor> run(const Check& check, const std::vector<Tensor>& tensors,
                        int thread_count = 2) {
  const Graph graph = make_graph(check, tensors);
  reference::EvaluateOptions options;
  options.thread_count = thread_count;
  std::vector<Tensor> results;
  const std::vector<Datum> outputs = reference::evaluate(graph, inputs_of(check, tensors), options);
  for (const Datum& result : outputs) results.push_back(result.tensor());
  return results;
}

std::string compare(std::string_view what, const std::vector<Tensor>& actual,
                    const std::vector<Tensor>& expected, Tolerance tolerance) {
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const std::string differs = difference(actual[k], expected[k], tolerance);
    if (!differs.empty()) return concat(what, ", result ", k, ": ", differs);
  }
  return "";
}

// Compares the block evaluator with the definition, element by element; both reduce in the same
// order, so every bit agrees.
std::string check_blocks(const Check& check, const std::vector<Tensor>& tensors,
                         const std::vector<Tensor>& results) {
  const Graph graph = make_graph(check, tensors);
  const Node& node = graph.node(graph.first());
  if (!node.op->lower) return "";
  const std::vector<std::optional<Datum>> operands = by_position(check, tensors);
  std::vector<const Tensor*> values;
  std::vector<Type> operand_types, result_types;
  std::size_t next_input = 0;
  for (const std::optional<Datum>& operand : operands) {
    values.push_back(operand ? &operand->tensor() : nullptr);
    operand_types.push_back(operand ? graph.value(graph.inputs()[next_input++]).type : Type{});
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    TensorType type = results[k].type();
    const Type& inferred = graph.value(node.results[k]).type;
    if (inferred.is_tensor()) type.layout = inferred.tensor().layout;
    result_types.push_back(type);
  }
  const Attributes attrs = bind_dynamic_attributes(*node.op, node.attrs, values);
  const std::vector<Expr> exprs = lower_op(*node.op, attrs, operand_types, result_types);
  if (flops_of(exprs).constant() > kPlainFlops) return "";
  std::vector<Tensor> plain;
  for (const Expr& expr : exprs) plain.push_back(reference::evaluate_plainly(expr, values));
  return compare("blocks against single elements", results, plain, {0, 0});
}

// Compares narrow types with f64 on the same (rounded) numbers.
std::string check_dtypes(const Check& check, const std::vector<Tensor>& tensors) {
  for (DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    const std::vector<Tensor> narrow = with_dtype(tensors, DType::F32, dtype);
    const std::vector<Tensor> results = run(check, narrow);
    std::vector<Tensor> expected = run(check, with_dtype(narrow, dtype, DType::F64));
    for (std::size_t k = 0; k < expected.size(); ++k) {
      if (expected[k].dtype() == DType::F64)
        expected[k] = expected[k].converted(results[k].dtype());
    }
    const std::string failure =
        compare(concat(to_string(dtype), " against f64"), results, expected, tolerance_of(dtype));
    if (!failure.empty()) return failure;
  }
  return "";
}

bool has_gradient(const Check& check) {
  if (!check.op->gradient || check.skip_gradient) return false;
  // Attributes that are known only at run time leave the gradient without types.
  for (const Given& given : check.operands) {
    const auto position = check.op->operand_index(given.name);
    if (position && check.op->operands[*position].is_dynamic_attribute) return false;
  }
  for (const Given& given : check.operands) {
    if (given.type.tensor().dtype == DType::F32) return true;
  }
  return false;
}

// The gradients of a check's operands. The loss is the results' elements weighted by fixed random
// numbers.
struct Gradients {
  Graph graph;                  // without outputs
  std::vector<Tensor> weights;  // by result
  std::vector<Var> found;       // by position of the operand

  // Builds a graph of the requested gradients, computed from the node's operands.
  Graph graph_of(const std::vector<ValueId>& outputs) const {
    Graph with_outputs = graph;
    with_outputs.set_outputs(outputs);
    with_outputs.erase_dead();
    return with_outputs;
  }
};

// Gradients with respect to the tensors of this element type that the results depend on.
Gradients gradients_of(const Check& check, const std::vector<Tensor>& tensors, DType dtype) {
  Gradients made{make_graph(check, tensors), {}, {}};
  Graph& graph = made.graph;
  const NodeId id = graph.first();
  graph.set_outputs({});
  std::vector<Var> upstream;
  Builder builder(graph);
  const std::vector<Tensor> results = run(check, tensors);
  for (std::size_t k = 0; k < results.size(); ++k) {
    made.weights.push_back(random_tensor(dtype, results[k].shape(), 991 + k, -1, 1));
    const bool flows = results[k].dtype() == dtype;
    upstream.push_back(flows ? builder.constant(made.weights.back()) : Var());
    // Constants have the default layout; the gradient has that of the result. Its extents may be
    // symbols that only a run relates to the result's.
    if (flows) {
      TensorType type = made.weights.back().type();
      type.layout = graph.value(graph.node(id).results[k]).type.tensor().layout;
      graph.set_type(ValueId(upstream.back().id()), type);
    }
  }
  Gradient gradient(builder, graph, id, upstream, differentiate);
  check.op->gradient(graph.node(id).attrs, gradient);
  made.found = gradient.gradients();
  return made;
}

// Compares with finite differences, in f64.
std::string check_gradient(const Check& check, const std::vector<Tensor>& given) {
  const std::vector<Tensor> tensors = with_dtype(given, DType::F32, DType::F64);
  const Gradients gradients = gradients_of(check, tensors, DType::F64);
  const std::vector<Tensor>& weights = gradients.weights;
  const auto loss = [&](const std::vector<Tensor>& at) {
    double total = 0;
    const std::vector<Tensor> values = run(check, at, 1);
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (values[k].dtype() != DType::F64) continue;
      for (std::int64_t i = 0; i < values[k].size(); ++i)
        total += values[k].real_at(i) * weights[k].real_at(i);
    }
    return total;
  };

  const std::vector<std::optional<Datum>> operands = by_position(check, tensors);
  std::size_t tensor_index = 0;
  for (std::size_t position = 0; position < operands.size(); ++position) {
    if (!operands[position]) continue;
    const std::size_t k = tensor_index++;
    const Tensor& x = operands[position]->tensor();
    if (x.dtype() != DType::F64) continue;
    Tensor slopes(DType::F64, x.shape());
    const Var found = gradients.found[position];
    if (found.is_valid()) {
      const Graph graph = gradients.graph_of({ValueId(found.id())});
      slopes = reference::evaluate(graph, inputs_of(check, tensors)).front().tensor();
      if (slopes.shape() != x.shape()) {
        return concat("gradient of operand ", position, " has type ", slopes.type(), " for ",
                      x.type());
      }
    }
    // `tensors` is in the order of the check's line, `operands` by position.
    std::size_t line_index = k;
    for (std::size_t n = 0; n < tensors.size(); ++n) {
      const auto place = check.op->operand_index(check.operands[n].name);
      if (place && *place == position && !check.op->operands[*place].is_variadic) line_index = n;
    }
    const std::int64_t step = std::max<std::int64_t>(1, x.size() / kProbesPerOperand);
    for (std::int64_t i = 0; i < x.size(); i += step) {
      const double h = 1e-5 * std::max(1.0, std::abs(x.real_at(i)));
      std::vector<Tensor> up = tensors, down = tensors;
      up[line_index].set_real(i, x.real_at(i) + h);
      down[line_index].set_real(i, x.real_at(i) - h);
      const double expected = (loss(up) - loss(down)) / (2 * h);
      const double actual = slopes.real_at(i);
      if (std::abs(actual - expected) > 1e-6 + 1e-4 * std::abs(expected)) {
        return concat("gradient by ", check.operands[line_index].name, "[", i, "] is ",
                      format_real(actual), ", finite differences say ", format_real(expected));
      }
    }
  }
  return "";
}

std::string check_compiled_gradient(const Check& check, const std::vector<Tensor>& tensors) {
  const Gradients gradients = gradients_of(check, tensors, DType::F32);
  std::vector<ValueId> outputs;
  for (const Var& found : gradients.found) {
    if (found.is_valid()) outputs.emplace_back(found.id());
  }
  if (outputs.empty()) return "";
  const Graph graph = gradients.graph_of(outputs);
  const std::vector<Datum> inputs = inputs_of(check, tensors);
  const std::string failure = compare_compiled(graph, inputs, reference::evaluate(graph, inputs));
  return failure.empty() ? "" : concat("gradient: ", failure);
}

}  // namespace

std::string check_compiled_op(const TestCase& test) {
  const Check check = CheckReader(test.arguments).read();
  if (check.op->is_random) return "";
  const std::vector<Tensor> given = make_operands(check);
  std::vector<std::vector<Tensor>> sets{given};
  if (!check.only_this_dtype) sets.push_back(with_dtype(given, DType::F32, DType::F16));
  for (const std::vector<Tensor>& tensors : sets) {
    const Graph graph = make_graph(check, tensors);
    const std::vector<Datum> inputs = inputs_of(check, tensors);
    std::string failure = compare_compiled(graph, inputs, reference::evaluate(graph, inputs));
    if (!failure.empty()) return failure;
  }
  return has_gradient(check) ? check_compiled_gradient(check, given) : "";
}

std::string check_op(const TestCase& test) {
  const Check check = CheckReader(test.arguments).read();
  const std::vector<Tensor> tensors = make_operands(check);
  const std::vector<Tensor> results = run(check, tensors);
  if (check.op->is_random) return "";
  std::string failure = compare("one thread against two", results, run(check, tensors, 1), {0, 0});
  if (failure.empty()) failure = check_blocks(check, tensors, results);
  bool has_f32 = false;
  for (const Tensor& tensor : tensors) has_f32 |= tensor.dtype() == DType::F32;
  if (failure.empty() && has_f32 && !check.only_this_dtype) failure = check_dtypes(check, tensors);
  if (failure.empty() && has_gradient(check)) failure = check_gradient(check, tensors);
  return failure;
}

}  // namespace tenon::testing
