#include "documents/chainer/describe.h"

#include "base/text.h"
#include "documents/chainer/functions.h"
#include "documents/chainer/solver.h"
#include "documents/chainer/training_graph.h"

#include <algorithm>
#include <map>

namespace tenon::documents::chainer {
namespace {

constexpr std::size_t kMaxRows = 70;

// Decimal units, as in the literature on this graph.
std::string gigabytes(std::int64_t bytes) {
  const std::int64_t thousandths = (bytes + 500'000) / 1'000'000;
  std::string rest = std::to_string(thousandths % 1000);
  return concat(thousandths / 1000, ".", std::string(3 - rest.size(), '0'), rest, " GB");
}

// Size of a tensor; exact below 100 kB.
std::string tensor_size(std::int64_t bytes) {
  if (bytes < 100'000) return concat(with_commas(bytes), " B");
  const std::int64_t tenths = (bytes + 50'000) / 100'000;
  return concat(tenths / 10, ".", tenths % 10, " MB");
}

// Total size of many tensors.
std::string total_size(std::int64_t bytes) {
  return bytes < 100'000'000 ? tensor_size(bytes) : gigabytes(bytes);
}

std::string flops_text(double flops) {
  if (flops < 1e12) return concat(format_count(flops), flops < 1000 ? " FLOP" : "FLOP");
  const auto thousandths = static_cast<std::int64_t>(flops / 1e9 + 0.5);
  const std::string rest = std::to_string(thousandths % 1000);
  return concat(thousandths / 1000, ".", std::string(3 - rest.size(), '0'), rest, " TFLOP");
}

std::string shape_text(const std::optional<TensorType>& type) {
  if (!type) return "?";
  std::string text;
  for (const Dim& dim : type->dims) text += concat(text.empty() ? "" : "x", dim);
  return text.empty() ? "scalar" : text;
}

class ChainerDescriber {
 public:
  ChainerDescriber(const Tables& tables, std::string_view source)
      : tables_(tables), source_(source), graph_(training_graph(tables, source)) {
    try {
      solution_ = solve_shapes(tables, source);
    } catch (const Error& error) {
      solution_.types.resize(tables.variables.size());
      solution_.contradiction = error.summary();
    }
  }

  Page run() {
    page_.title =
        concat("Chainer training step: ", tables_.forward.size(),
               " functions forward and as many backward, ", tables_.variables.size(), " variables");
    add_introduction();
    add_totals();
    add_network();
    add_memory();
    add_legend();
    return std::move(page_);
  }

 private:
  void add_introduction() {
    std::string text =
        "The file was dumped from Chainer after one forward pass: every tensor with its size in "
        "bytes, every function\n"
        "with what it reads and makes, and for each function what its backward reads. It holds no "
        "shapes: those below\n"
        "were found from the sizes.";
    if (!solution_.unknown_functions.empty()) {
      text += concat("\n", solution_.unknown_functions.size(),
                     " functions are not known here, so that some shapes stay open.");
    } else if (!solution_.is_solved) {
      text += concat("\nNo shapes fit all the sizes: ", solution_.contradiction,
                     ". `tenon check` says more.");
    } else if (solution_.is_ambiguous) {
      text +=
          "\nOther shapes would give the same sizes; of these the first was taken: one batch for "
          "all inputs, images as"
          "\nhigh as wide and as large as possible.";
    } else if (solution_.is_cut_off) {
      text += "\nThe search for other shapes of the same sizes was cut off.";
    } else {
      text += "\nNo other shapes fit all the sizes.";
    }
    page_.sections.push_back({"", std::move(text), {}, {}});
  }

  double multiply_adds() const {
    std::vector<Shape> shapes(tables_.variables.size());
    for (std::size_t v = 0; v < shapes.size(); ++v) {
      if (solution_.types[v]) shapes[v] = constants(solution_.types[v]->dims);
    }
    double total = 0;
    for (std::size_t k = 0; k < tables_.forward.size(); ++k) {
      const FunctionView view(tables_, k, source_);
      const FunctionRule* rule =
          view.function().find(kOwnOp) != nullptr ? nullptr : find_rule(view.function().name);
      if (rule != nullptr && rule->multiply_adds != nullptr)
        total += rule->multiply_adds(view, shapes);
    }
    return total;
  }

  void add_totals() {
    using TensorRole = TrainingGraph::TensorRole;
    Page::Section section{"Totals", "", {"", ">tensors", ">bytes", ""}, {}};
    const auto row = [&](std::string what, TensorRole role, std::string note) {
      section.rows.push_back({std::move(what), std::to_string(graph_.count_of(role)),
                              with_commas(graph_.bytes_of(role)), std::move(note)});
    };
    row("inputs", TensorRole::Input, input_shapes());
    row("parameters", TensorRole::Parameter, parameter_count());
    row("intermediates", TensorRole::Intermediate,
        "as many bytes of gradients again, were all kept");
    std::int64_t hidden = 0;
    for (const TrainingGraph::FunctionStep& step : graph_.steps) hidden += step.hidden_bytes;
    section.rows.push_back({"hidden state", "", with_commas(hidden),
                            "masks, scores and statistics inside functions; not in the file"});
    const bool are_all_known =
        std::none_of(tables_.forward.begin(), tables_.forward.end(),
                     [](const Function& function) { return function.find(kOwnOp) != nullptr; });
    if (solution_.is_solved && solution_.unknown_functions.empty() && are_all_known) {
      section.rows.push_back({"forward (operations)", "", Page::Cell("", 2 * multiply_adds()),
                              flops_text(2 * multiply_adds()) +
                                  " in products, a multiplication and an addition "
                                  "counted as two; backward takes about twice that"});
    }
    page_.sections.push_back(std::move(section));
  }

  std::string input_shapes() const {
    std::map<std::int64_t, std::string> shapes;
    for (std::size_t v = 0; v < tables_.variables.size(); ++v) {
      if (!tables_.variables[v].is_input()) continue;
      shapes[parse_integer(tables_.variables[v].name).value_or(-1)] =
          shape_text(solution_.types[v]);
    }
    std::string text;
    for (const auto& [index, shape] : shapes)
      text += concat(text.empty() ? "" : ", ", index, ": ", shape);
    return text;
  }

  std::string parameter_count() const {
    std::int64_t count = 0;
    for (std::size_t v = 0; v < tables_.variables.size(); ++v) {
      if (tables_.variables[v].is_parameter() && solution_.types[v])
        count += product(solution_.types[v]->dims).constant();
    }
    return with_commas(count) + " numbers";
  }

  std::string parameters_of(const TrainingGraph::FunctionStep& step) const {
    std::string path, shapes;
    for (const std::size_t tensor : step.reads) {
      if (graph_.tensors[tensor].role != TrainingGraph::TensorRole::Parameter) continue;
      const std::string& name = tables_.variables[tensor].name;
      if (path.empty()) path = name.substr(0, std::max<std::size_t>(name.rfind('/'), 1));
      shapes += concat(shapes.empty() ? "" : " ", shape_text(solution_.types[tensor]));
    }
    return path.empty() ? "" : concat(path, " ", shapes);
  }

  // Lists retained variables: x and y for inputs and outputs, W for parameters.
  std::string kept_text(const TrainingGraph::FunctionStep& step) const {
    std::string text;
    const auto add = [&](const std::string& word) {
      text += concat(text.empty() ? "" : ", ", word);
    };
    for (const std::size_t tensor : step.retained.inputs) {
      add(graph_.tensors[tensor].role == TrainingGraph::TensorRole::Parameter
              ? "W"
              : concat("x ", graph_.tensors[tensor].id));
    }
    for (const std::size_t tensor : step.retained.outputs)
      add(concat("y ", graph_.tensors[tensor].id));
    if (step.hidden_bytes > 0) add("hidden " + tensor_size(step.hidden_bytes));
    return text;
  }

  void add_network() {
    Page::Section section{
        "The network",
        "",
        {">rank", "function", "reads", "makes", ">id", ">bytes", "parameters", "kept for backward"},
        {}};
    std::vector<std::int64_t> ranks(graph_.steps.size(), 0);
    for (std::size_t k = 0; k < graph_.steps.size(); ++k) {
      for (const std::size_t tensor : graph_.steps[k].reads) {
        const std::size_t producer = graph_.tensors[tensor].producer;
        if (producer != kNone) ranks[k] = std::max(ranks[k], ranks[producer] + 1);
      }
      const bool is_hidden = graph_.steps.size() > kMaxRows && k >= kMaxRows / 2 &&
                             k + kMaxRows / 2 < graph_.steps.size();
      if (is_hidden) {
        if (k == kMaxRows / 2)
          section.rows.push_back({"…", concat(graph_.steps.size() - 2 * (kMaxRows / 2), " more"),
                                  "", "", "", "", "", ""});
        continue;
      }
      const TrainingGraph::FunctionStep& step = graph_.steps[k];
      std::string reads, makes, ids;
      std::int64_t bytes = 0;
      for (const std::size_t tensor : step.reads) {
        if (graph_.tensors[tensor].role == TrainingGraph::TensorRole::Parameter) continue;
        reads += concat(reads.empty() ? "" : ", ", shape_text(solution_.types[tensor]));
      }
      for (const std::size_t tensor : step.makes) {
        makes += concat(makes.empty() ? "" : ", ", shape_text(solution_.types[tensor]));
        ids += concat(ids.empty() ? "" : ", ", graph_.tensors[tensor].id);
        bytes += graph_.tensors[tensor].bytes;
      }
      section.rows.push_back({std::to_string(ranks[k]), step.function, reads, makes, ids,
                              Page::Cell(tensor_size(bytes), static_cast<double>(bytes)),
                              parameters_of(step), kept_text(step)});
    }
    page_.sections.push_back(std::move(section));
  }

  std::string step_text(const TrainingPeak& peak) const {
    if (graph_.steps.empty()) return "";
    const TrainingGraph::FunctionStep& step = graph_.steps[peak.step];
    return concat(peak.is_backward ? "backward of " : "", step.function, " making ",
                  step.makes.empty() ? std::string("nothing")
                                     : std::to_string(graph_.tensors[step.makes[0]].id));
  }

  void add_memory() {
    Page::Section section{
        "Memory of a step without recomputation",
        "Intermediates and their gradients; parameters, their gradients and inputs lie beside "
        "them. The file can be read\n"
        "in two ways: its tags list nearly every input for every backward, its lists of retained "
        "indexes only what\n"
        "Chainer keeps.",
        {"reading", ">kept for backward", ">peak", "where", ">largest function", "which"},
        {}};
    for (const Reading reading : {Reading::Tags, Reading::Retained}) {
      const std::vector<std::size_t> kept = kept_for_backward(graph_, reading);
      std::int64_t kept_bytes = 0;
      for (const std::size_t tensor : kept) kept_bytes += graph_.tensors[tensor].bytes;
      const TrainingPeak peak = peak_without_recomputation(graph_, reading),
                         least = largest_working_set(graph_, reading);
      section.rows.push_back({reading == Reading::Tags ? "tags" : "retained",
                              Page::Cell(concat(kept.size(), " tensors, ", total_size(kept_bytes)),
                                         static_cast<double>(kept_bytes)),
                              Page::Cell(total_size(peak.bytes), static_cast<double>(peak.bytes)),
                              step_text(peak),
                              Page::Cell(total_size(least.bytes), static_cast<double>(least.bytes)),
                              step_text(least)});
    }
    const std::int64_t beside = 2 * graph_.bytes_of(TrainingGraph::TensorRole::Parameter) +
                                graph_.bytes_of(TrainingGraph::TensorRole::Input);
    section.text += concat(" Beside the peaks: ", total_size(beside), ".");
    page_.sections.push_back(std::move(section));
  }

  void add_legend() {
    page_.sections.push_back({"How to read the file",
                              "Line 1 counts variables and functions (forward and backward "
                              "together). A variable's line is its id, its bytes and\n"
                              "its name: _ for what a function makes, a path for a parameter, a "
                              "number for an input. A function's record is the\n"
                              "word forward or backward, how many variables it reads and makes, a "
                              "line for each of them, Chainer's name for the\n"
                              "function, and its attributes as JSON. What a backward reads is "
                              "tagged: gradient, input (a value that forward read)\n"
                              "or output (a value that forward made). Records stand in no order; "
                              "rank is the depth of a function. Backward k\n"
                              "belongs to forward k.",
                              {},
                              {}});
  }

  const Tables& tables_;
  std::string_view source_;
  TrainingGraph graph_;
  ShapeSolution solution_;
  Page page_;
};

}  // namespace

Page describe_tables(const Tables& tables, std::string_view source) {
  return ChainerDescriber(tables, source).run();
}

}  // namespace tenon::documents::chainer
