#include "documents/chainer/problem.h"

#include "documents/chainer/fused.h"
#include "documents/chainer/solver.h"

#include <algorithm>

namespace tenon::documents::chainer {
namespace {

constexpr std::uint32_t kNoValue = static_cast<std::uint32_t>(-1);

// Shapes by variable; empty if unknown.
std::vector<Shape> shapes_of(const Tables& tables, std::string_view source) {
  std::vector<Shape> shapes(tables.variables.size());
  SolveOptions options;
  options.solution_limit = 1;
  const ShapeSolution solution = solve_shapes(tables, source, options);
  for (std::size_t v = 0; v < shapes.size() && solution.is_solved; ++v) {
    if (solution.types[v]) shapes[v] = constants(solution.types[v]->dims);
  }
  return shapes;
}

// Returns the multiply-adds of each step; zero if shapes are unknown.
std::vector<double> products_of(const Tables& tables, std::string_view source,
                                const TrainingGraph& graph, const std::vector<Shape>& shapes) {
  std::vector<double> products(graph.steps.size(), 0);
  for (std::size_t k = 0; k < graph.steps.size(); ++k) {
    const FunctionView view(tables, graph.steps[k].record, source);
    if (view.function().find(kOwnOp) != nullptr) continue;
    const FunctionRule* rule = find_rule(view.function().name);
    if (rule == nullptr || rule->multiply_adds == nullptr) continue;
    const bool is_known = std::none_of(view.inputs().begin(), view.inputs().end(),
                                       [&](std::size_t v) { return shapes[v].empty(); });
    if (is_known) products[k] = rule->multiply_adds(view, shapes);
  }
  return products;
}

class ChainerStepProblem {
 public:
  ChainerStepProblem(const TrainingGraph& graph, std::vector<ChainerStep> steps, Reading reading,
                     const memory::DeviceSpec& device)
      : graph_(graph),
        steps_(std::move(steps)),
        reading_(reading),
        device_(device),
        value_(graph.tensors.size(), kNoValue),
        gradient_(graph.tensors.size(), kNoValue),
        hidden_(steps_.size(), kNoValue) {}

  memory::Problem run() {
    using TensorRole = TrainingGraph::TensorRole;
    problem_.fixed_bytes = static_cast<std::uint64_t>(2 * graph_.bytes_of(TensorRole::Parameter) +
                                                      graph_.bytes_of(TensorRole::Input));
    problem_.link = device_.link;
    for (std::size_t k = 0; k < steps_.size(); ++k) add_forward(k);
    for (std::size_t k = steps_.size(); k-- > 0;) add_backward(k);
    return std::move(problem_);
  }

 private:
  std::uint32_t add_value(std::string name, std::int64_t bytes) {
    problem_.values.push_back({std::move(name), static_cast<std::uint64_t>(bytes), false, true});
    return static_cast<std::uint32_t>(problem_.values.size() - 1);
  }
  double bytes_of(std::size_t tensor) const {
    return static_cast<double>(graph_.tensors[tensor].bytes);
  }
  static void add_once(std::vector<std::uint32_t>& list, std::uint32_t value) {
    if (value == kNoValue || std::find(list.begin(), list.end(), value) != list.end()) return;
    list.push_back(value);
  }

  void add_forward(std::size_t k) {
    const TrainingGraph::FunctionStep& step = steps_[k].step;
    if (steps_[k].is_view) {
      value_[step.makes[0]] = value_[step.reads[0]];
      return;
    }
    memory::Item item;
    item.may_repeat = true;
    double bytes = 0;
    for (const std::size_t tensor : step.reads) {
      add_once(item.reads, value_[tensor]);
      bytes += bytes_of(tensor);
    }
    for (const std::size_t tensor : step.makes) {
      value_[tensor] = add_value(concat(step.function, "_", graph_.tensors[tensor].id),
                                 graph_.tensors[tensor].bytes);
      item.makes.push_back(value_[tensor]);
      bytes += bytes_of(tensor);
    }
    item.name = name_of(k);
    if (reading_ == Reading::Retained && step.hidden_bytes > 0) {
      hidden_[k] = add_value(concat("state of ", item.name), step.hidden_bytes);
      item.makes.push_back(hidden_[k]);
    }
    item.alternatives.push_back({device_.seconds(2 * steps_[k].products, bytes), 0});
    problem_.items.push_back(std::move(item));
  }

  std::string name_of(std::size_t k) const {
    const TrainingGraph::FunctionStep& step = steps_[k].step;
    return step.makes.empty() ? step.function
                              : concat(step.function, "_", graph_.tensors[step.makes[0]].id);
  }

  // Gradient of the loss: starts from a value without an incoming gradient.
  std::uint32_t gradient_of_result(std::size_t tensor) {
    if (gradient_[tensor] != kNoValue) return gradient_[tensor];
    gradient_[tensor] =
        add_value(concat("gradient of ", graph_.tensors[tensor].id), graph_.tensors[tensor].bytes);
    memory::Item item;
    item.name = problem_.values[gradient_[tensor]].name;
    item.makes = {gradient_[tensor]};
    item.alternatives.push_back({});
    problem_.items.push_back(std::move(item));
    return gradient_[tensor];
  }

  // Gradients that an item computes: of the parameters, of the operands, or both.
  enum class Half : std::uint8_t { Both, Parameters, Operands };

  void add_backward(std::size_t k) {
    if (!steps_[k].has_halves) return add_backward(k, Half::Both);
    add_backward(k, Half::Parameters);
    add_backward(k, Half::Operands);
  }

  void add_backward(std::size_t k, Half half) {
    const TrainingGraph::FunctionStep& step = steps_[k].step;
    memory::Item item;
    item.name = concat("backward of ", name_of(k), half == Half::Parameters ? ", parameters" : "");
    double bytes = 0;
    for (const std::size_t tensor : step.makes) {
      add_once(item.reads, gradient_of_result(tensor));
      bytes += bytes_of(tensor);
    }
    const TrainingGraph::Needs& needs = step.needs(reading_);
    for (const auto* list : {&needs.inputs, &needs.outputs}) {
      for (const std::size_t tensor : *list) {
        const bool is_operand = value_[tensor] != kNoValue;
        if (half == Half::Operands && is_operand && !is_masked(k, tensor)) continue;
        if (half == Half::Parameters && !is_operand) continue;
        add_once(item.reads, value_[tensor]);
        bytes += bytes_of(tensor);
      }
    }
    add_once(item.reads, hidden_[k]);
    std::vector<std::size_t> seen;
    for (const std::size_t tensor : step.reads) {
      if (graph_.tensors[tensor].role == TrainingGraph::TensorRole::Input) continue;
      if (std::find(seen.begin(), seen.end(), tensor) != seen.end()) continue;
      seen.push_back(tensor);
      // gradients of parameters are stored elsewhere
      const bool is_operand = value_[tensor] != kNoValue;
      if (half == (is_operand ? Half::Parameters : Half::Operands)) continue;
      bytes += bytes_of(tensor);
      if (is_operand) add_gradient(item, k, tensor);
    }
    const double factors = half == Half::Both ? steps_[k].factor_gradients : 1;
    item.alternatives.push_back({device_.seconds(2 * steps_[k].products * factors, bytes), 0});
    problem_.items.push_back(std::move(item));
  }

  bool is_masked(std::size_t k, std::size_t tensor) const {
    return std::ranges::find(steps_[k].masked, tensor) != steps_[k].masked.end();
  }

  void add_gradient(memory::Item& item, std::size_t k, std::size_t tensor) {
    const std::uint32_t before = gradient_[tensor];
    gradient_[tensor] = add_value(
        concat("gradient of ", graph_.tensors[tensor].id, before == kNoValue ? "" : ", more"),
        graph_.tensors[tensor].bytes);
    item.makes.push_back(gradient_[tensor]);
    if (before != kNoValue) {
      add_once(item.reads, before);
      item.may_share.emplace_back(gradient_[tensor], before);
    }
    if (is_masked(k, tensor)) item.may_share.emplace_back(gradient_[tensor], value_[tensor]);
  }

  const TrainingGraph& graph_;
  std::vector<ChainerStep> steps_;
  Reading reading_;
  const memory::DeviceSpec& device_;
  std::vector<std::uint32_t> value_, gradient_;  // by tensor
  std::vector<std::uint32_t> hidden_;            // by step
  memory::Problem problem_;
};

std::vector<ChainerStep> steps_of(const TrainingGraph& graph, const std::vector<double>& products) {
  std::vector<ChainerStep> steps;
  for (std::size_t k = 0; k < graph.steps.size(); ++k) {
    ChainerStep& made = steps.emplace_back();
    made.step = graph.steps[k];
    made.products = products[k];
    // The gradient by each of a product's two operands has the cost of the product.
    for (std::size_t position = 0; position < std::min<std::size_t>(2, made.step.reads.size());
         ++position) {
      const bool is_input =
          graph.tensors[made.step.reads[position]].role == TrainingGraph::TensorRole::Input;
      made.factor_gradients += is_input ? 0 : 1;
    }
  }
  return steps;
}

// The batch is the first extent of the first input that has one.
std::int64_t batch_of(const Tables& tables, const std::vector<Shape>& shapes) {
  for (std::size_t v = 0; v < shapes.size(); ++v) {
    if (tables.variables[v].is_input() && !shapes[v].empty()) return shapes[v][0];
  }
  return 1;
}

memory::Problem problem_of(const Tables& tables, std::string_view source, Reading reading,
                           const memory::DeviceSpec& device, int micro_batches, bool is_fused) {
  TrainingGraph graph = training_graph(tables, source);
  const std::vector<Shape> shapes = shapes_of(tables, source);
  std::vector<double> products = products_of(tables, source, graph, shapes);
  if (micro_batches > 1) {
    const std::int64_t batch = batch_of(tables, shapes);
    TENON_ASSERT(batch % micro_batches == 0, "parts of a batch are of one size");
    for (std::size_t v = 0; v < graph.tensors.size(); ++v) {
      const bool has_batch = !shapes[v].empty() && shapes[v][0] == batch &&
                             graph.tensors[v].role == TrainingGraph::TensorRole::Intermediate;
      if (has_batch) graph.tensors[v].bytes /= micro_batches;
    }
    for (TrainingGraph::FunctionStep& step : graph.steps) step.hidden_bytes /= micro_batches;
    for (double& count : products) count /= micro_batches;
  }
  std::vector<ChainerStep> steps = steps_of(graph, products);
  if (is_fused) steps = fused(graph, std::move(steps));
  memory::Problem problem = ChainerStepProblem(graph, std::move(steps), reading, device).run();
  problem.name = std::string(source);
  return problem;
}

// Returns the possible numbers of micro-batches; empty if an operator mixes samples.
std::vector<int> micro_batch_counts(const Tables& tables, std::string_view source) {
  // Batch statistics differ between a batch and its parts.
  for (const Function& function : tables.forward) {
    if (function.name == "BatchNormalization") return {};
  }
  const std::int64_t batch = batch_of(tables, shapes_of(tables, source));
  std::vector<int> micro_batches;
  for (int count = 2; count <= batch && count <= 1024; ++count) {
    if (batch % count == 0) micro_batches.push_back(count);
  }
  return micro_batches;
}

}  // namespace

RecordedRun recorded_run(const Tables& tables, const std::string& source, const RunReading& wanted,
                         const memory::DeviceSpec& device) {
  const Reading reading = wanted.uses_tags ? Reading::Tags : Reading::Retained;
  const bool is_fused = wanted.is_fused;
  RecordedRun run;
  run.problem = problem_of(tables, source, reading, device, 1, is_fused);
  run.note = is_fused           ? "a training step, its functions fused"
             : wanted.uses_tags ? "a training step, what backward needs by tags"
                                : "a training step, what backward needs as retained";
  for (const int micro_batches : micro_batch_counts(tables, source)) {
    run.split.emplace_back(micro_batches, [=] {
      return problem_of(tables, source, reading, device, micro_batches, is_fused);
    });
  }
  return run;
}

}  // namespace tenon::documents::chainer
