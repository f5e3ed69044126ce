#include "documents/chainer/training_graph.h"

#include "documents/chainer/solver.h"

#include <algorithm>

namespace tenon::documents::chainer {
namespace {

std::optional<std::vector<std::int64_t>> indexes(const Function& function,
                                                 std::string_view attribute) {
  const ChainerAttribute* found = function.find(attribute);
  if (found == nullptr) return std::nullopt;
  std::vector<std::int64_t> list;
  if (std::holds_alternative<std::nullptr_t>(found->value.value)) return list;
  const auto* array = held_by<frontends::JsonValue::Array>(found->value);
  if (array == nullptr) return std::nullopt;
  for (const frontends::JsonValue& element : *array) {
    const auto* index = held_by<std::int64_t>(element);
    if (index == nullptr) return std::nullopt;
    list.push_back(*index);
  }
  return list;
}

// Skips invalid indices, which the checker reports.
std::vector<std::size_t> at(const std::vector<std::size_t>& variables,
                            const std::vector<std::int64_t>& positions) {
  std::vector<std::size_t> chosen;
  for (const std::int64_t position : positions) {
    if (position < 0 || position >= static_cast<std::int64_t>(variables.size())) continue;
    chosen.push_back(variables[static_cast<std::size_t>(position)]);
  }
  return chosen;
}

std::int64_t hidden_bytes(const FunctionView& view) {
  if (view.function().find(kOwnOp) != nullptr) return 0;
  const FunctionRule* rule = find_rule(view.function().name);
  if (rule == nullptr || rule->hidden_bytes == nullptr) return 0;
  if (view.input_count() < rule->least_inputs || view.function().outputs.empty()) return 0;
  try {
    return rule->hidden_bytes(view);
  } catch (const Error&) {
    return 0;  // an invalid attribute, which the checker reports
  }
}

// Liveness of values and gradients, two entries per tensor, over the steps of one training step.
class Liveness {
 public:
  Liveness(const TrainingGraph& graph, Reading reading) : graph_(graph), reading_(reading) {
    first_.assign(2 * graph.tensors.size(), kNone);
    last_.assign(2 * graph.tensors.size(), 0);
  }

  TrainingPeak peak() {
    const std::size_t count = 2 * graph_.steps.size();
    for (std::size_t moment = 0; moment < count; ++moment) {
      for (const std::size_t thing : touched(moment)) {
        if (first_[thing] == kNone) first_[thing] = moment;
        last_[thing] = moment;
      }
    }
    std::vector<std::int64_t> change(count + 1, 0);
    for (std::size_t thing = 0; thing < first_.size(); ++thing) {
      if (first_[thing] == kNone) continue;
      change[first_[thing]] += graph_.tensors[thing / 2].bytes;
      change[last_[thing] + 1] -= graph_.tensors[thing / 2].bytes;
    }
    for (std::size_t k = 0; reading_ == Reading::Retained && k < graph_.steps.size(); ++k) {
      change[k] += graph_.steps[k].hidden_bytes;
      change[count - k] -= graph_.steps[k].hidden_bytes;
    }
    TrainingPeak peak;
    std::int64_t alive = 0;
    for (std::size_t moment = 0; moment < count; ++moment) {
      alive += change[moment];
      if (alive > peak.bytes) peak = {alive, step_at(moment), moment >= graph_.steps.size()};
    }
    return peak;
  }

  TrainingPeak working_set() {
    TrainingPeak peak;
    for (std::size_t moment = 0; moment < 2 * graph_.steps.size(); ++moment) {
      std::vector<std::size_t> things = touched(moment);
      std::sort(things.begin(), things.end());
      things.erase(std::unique(things.begin(), things.end()), things.end());
      std::int64_t bytes = 0;
      for (const std::size_t thing : things) bytes += graph_.tensors[thing / 2].bytes;
      if (bytes > peak.bytes) peak = {bytes, step_at(moment), moment >= graph_.steps.size()};
    }
    return peak;
  }

 private:
  std::size_t step_at(std::size_t moment) const {
    const std::size_t count = graph_.steps.size();
    return moment < count ? moment : 2 * count - 1 - moment;
  }

  std::vector<std::size_t> touched(std::size_t moment) const {
    std::vector<std::size_t> things;
    const auto add = [&](const std::vector<std::size_t>& tensors, bool is_gradient) {
      for (const std::size_t tensor : tensors) {
        if (graph_.tensors[tensor].producer == kNone) continue;
        things.push_back(2 * tensor + (is_gradient ? 1 : 0));
      }
    };
    const TrainingGraph::FunctionStep& step = graph_.steps[step_at(moment)];
    if (moment < graph_.steps.size()) {
      add(step.reads, false);
      add(step.makes, false);
    } else {
      add(step.makes, true);
      add(step.needs(reading_).inputs, false);
      add(step.needs(reading_).outputs, false);
      add(step.reads, true);
    }
    return things;
  }

  const TrainingGraph& graph_;
  Reading reading_;
  std::vector<std::size_t> first_, last_;
};

}  // namespace

std::int64_t TrainingGraph::bytes_of(TensorRole role) const {
  std::int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.role == role ? tensor.bytes : 0;
  return bytes;
}

std::size_t TrainingGraph::count_of(TensorRole role) const {
  return static_cast<std::size_t>(std::count_if(
      tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return tensor.role == role; }));
}

std::optional<Retained> retained_of(const Function& function) {
  auto inputs = indexes(function, "_input_indexes_to_retain");
  auto outputs = indexes(function, "_output_indexes_to_retain");
  if (!inputs || !outputs) return std::nullopt;
  return Retained{*std::move(inputs), *std::move(outputs)};
}

TrainingGraph training_graph(const Tables& tables, std::string_view source) {
  TrainingGraph graph;
  for (const Variable& variable : tables.variables) {
    TrainingGraph::Tensor tensor;
    tensor.id = variable.id;
    tensor.bytes = variable.bytes;
    if (variable.is_input()) tensor.role = TrainingGraph::TensorRole::Input;
    if (variable.is_parameter()) tensor.role = TrainingGraph::TensorRole::Parameter;
    graph.tensors.push_back(tensor);
  }
  for (const std::size_t k : topological_order(tables)) {
    const FunctionView view(tables, k, source);
    TrainingGraph::FunctionStep step;
    step.function = view.function().name;
    step.record = k;
    step.reads = view.inputs();
    step.makes = view.function().outputs;
    for (const Input& input : tables.backward[k].inputs) {
      if (input.tag == Tag::Input) step.tagged.inputs.push_back(input.variable);
      if (input.tag == Tag::Output) step.tagged.outputs.push_back(input.variable);
    }
    const Retained retained = retained_of(view.function()).value_or(Retained{});
    step.retained = {at(step.reads, retained.inputs), at(step.makes, retained.outputs)};
    step.hidden_bytes = hidden_bytes(view);
    for (const std::size_t output : step.makes) graph.tensors[output].producer = graph.steps.size();
    graph.steps.push_back(std::move(step));
  }
  // An unnamed value without a producer existed before, like the statistics of a norm.
  for (TrainingGraph::Tensor& tensor : graph.tensors) {
    const bool is_made =
        tensor.producer != kNone || tensor.role != TrainingGraph::TensorRole::Intermediate;
    if (!is_made) tensor.role = TrainingGraph::TensorRole::Parameter;
  }
  return graph;
}

TrainingPeak peak_without_recomputation(const TrainingGraph& graph, Reading reading) {
  return Liveness(graph, reading).peak();
}

TrainingPeak largest_working_set(const TrainingGraph& graph, Reading reading) {
  return Liveness(graph, reading).working_set();
}

std::vector<std::size_t> kept_for_backward(const TrainingGraph& graph, Reading reading) {
  std::vector<char> is_kept(graph.tensors.size(), 0);
  for (const TrainingGraph::FunctionStep& step : graph.steps) {
    for (const std::size_t tensor : step.needs(reading).inputs) is_kept[tensor] = 1;
    for (const std::size_t tensor : step.needs(reading).outputs) is_kept[tensor] = 1;
  }
  std::vector<std::size_t> kept;
  for (std::size_t k = 0; k < is_kept.size(); ++k) {
    if (is_kept[k] != 0 && graph.tensors[k].producer != kNone) kept.push_back(k);
  }
  return kept;
}

}  // namespace tenon::documents::chainer
