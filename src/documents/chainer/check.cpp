#include "documents/chainer/check.h"

#include "base/text.h"
#include "documents/chainer/functions.h"
#include "documents/chainer/importer.h"
#include "documents/chainer/solver.h"
#include "documents/chainer/training_graph.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::documents::chainer {
namespace {

constexpr std::size_t kMaxSuspects = 24;
// Work limit for all suspects together.
constexpr std::size_t kMaxWork = 2'000'000;

std::string json_text(const ChainerAttribute* attribute) {
  if (attribute == nullptr) return "nothing";
  const std::string object = print_attributes({{"", attribute->value, 0}});
  return object.substr(5, object.size() - 6);  // strips {"":  and }
}

std::string list_text(const std::vector<std::int64_t>& list) {
  if (list.empty()) return "null";
  std::string text = "[";
  for (const std::int64_t each : list) text += concat(text.size() > 1 ? ", " : "", each);
  return text + "]";
}

class ChainerChecker {
 public:
  ChainerChecker(const Tables& tables, std::string_view source)
      : tables_(tables),
        source_(source),
        producers_(producers_of(tables)),
        is_read_(tables.variables.size(), 0) {
    for (const Function& function : tables.forward) {
      for (const Input& input : function.inputs) is_read_[input.variable] = 1;
    }
  }

  Findings run() {
    check_pairs();
    check_variables();
    check_ranks();
    check_sizes();
    check_retained();
    return std::move(findings_);
  }

 private:
  void check_variables() {
    std::vector<char> is_used(tables_.variables.size(), 0);
    for (const Function& function : tables_.forward) {
      for (const Input& input : function.inputs) is_used[input.variable] = 1;
      for (const std::size_t output : function.outputs) is_used[output] = 1;
    }
    std::int64_t input_count = 0;
    for (const Variable& variable : tables_.variables) input_count += variable.is_input();
    for (std::size_t v = 0; v < tables_.variables.size(); ++v) {
      const Variable& variable = tables_.variables[v];
      findings_.compare("variable id", place_of(line_of_variable(v), 1), variable.id,
                        static_cast<std::int64_t>(v));
      findings_.compare("variable is in use", place_of(line_of_variable(v), 1),
                        std::string(is_used[v] != 0 ? "in use" : "in no function"),
                        std::string("in use"));
      if (!variable.is_input()) continue;
      const std::int64_t index = parse_integer(variable.name).value_or(-1);
      const std::string place =
          place_of(line_of_variable(v), concat(variable.id, " ", variable.bytes, " ").size() + 1);
      findings_.require(index >= 0 && index < input_count && std::to_string(index) == variable.name,
                        "input index", place, variable.name, concat("below ", input_count));
    }
  }

  void check_ranks() {
    ranks_.assign(tables_.forward.size(), 0);
    for (const std::size_t k : topological_order(tables_)) {
      for (const Input& input : tables_.forward[k].inputs) {
        const std::size_t producer = producers_[input.variable];
        if (producer != kNone) ranks_[k] = std::max(ranks_[k], ranks_[producer] + 1);
      }
      for (const auto* list : {&tables_.forward, &tables_.backward}) {
        const Function& function = (*list)[k];
        findings_.compare(
            "rank", [&] { return place_of_attribute(function, "rank"); },
            json_text(function.find("rank")), std::to_string(ranks_[k]));
      }
    }
  }

  // Backward record k must mirror forward record k.
  void check_pairs() {
    for (std::size_t k = 0; k < tables_.forward.size(); ++k) {
      const Function &forward = tables_.forward[k], &backward = tables_.backward[k];
      const bool is_forward_unknown =
          find_rule(forward.name) == nullptr && find_rule(backward.name) != nullptr;
      if (is_forward_unknown && forward.find(kOwnOp) == nullptr) {
        findings_.miss("forward: function", place_of_name(forward), forward.name, backward.name);
      } else {
        findings_.compare(
            "backward: function", [&] { return place_of_name(backward); }, backward.name,
            forward.name);
      }
      check_attributes(k);
      std::vector<std::size_t> forward_inputs, forward_outputs = forward.outputs, gradients, inputs,
                                               kept;
      for (const Input& input : forward.inputs) forward_inputs.push_back(input.variable);
      for (const Input& input : backward.inputs) {
        auto& list = input.tag == Tag::Gradient ? gradients
                     : input.tag == Tag::Input  ? inputs
                                                : kept;
        list.push_back(input.variable);
      }
      // The forward record lists a variable once even if the function reads it twice.
      std::vector<std::size_t> distinct;
      std::unordered_set<std::size_t> seen;
      for (const std::size_t variable : inputs) {
        if (seen.insert(variable).second) distinct.push_back(variable);
      }
      const bool reads_inputs = forward.name != "ReLU";
      believe("forward: inputs", forward, 0, forward_inputs, backward.outputs,
              reads_inputs
                  ? distinct == backward.outputs
                  : !is_rank_of(forward, forward_inputs) && is_rank_of(forward, backward.outputs));
      believe("forward: outputs", forward, forward.inputs.size(), forward_outputs, gradients,
              are_missed(gradients, forward_outputs));
      compare_lists("backward: gradients in", backward, 0, gradients, forward_outputs);
      compare_lists("backward: inputs", backward, gradients.size(), distinct,
                    reads_inputs ? forward_inputs : std::vector<std::size_t>{});
      std::vector<std::size_t> retained;
      for (const std::int64_t index : retained_of(forward).value_or(Retained{}).outputs) {
        if (index < 0 || index >= static_cast<std::int64_t>(forward_outputs.size())) continue;
        retained.push_back(forward_outputs[static_cast<std::size_t>(index)]);
      }
      compare_lists("backward: retained outputs", backward, gradients.size() + inputs.size(), kept,
                    retained);
      compare_lists("backward: gradients out", backward, backward.inputs.size(), backward.outputs,
                    forward_inputs);
    }
  }

  // If both records differ in their variables and the backward one is consistent, reports the
  // forward one and corrects its list for the remaining checks.
  void believe(std::string_view kind, const Function& forward, std::size_t first,
               std::vector<std::size_t>& says, const std::vector<std::size_t>& should_be,
               bool is_backward_right) {
    if (says == should_be || says.size() != should_be.size() || !is_backward_right) return;
    compare_lists(kind, forward, first, says, should_be);
    says = should_be;
  }

  // Returns whether the function's rank is one more than the greatest rank of its producers.
  bool is_rank_of(const Function& function, const std::vector<std::size_t>& inputs) const {
    std::int64_t rank = 0;
    for (const std::size_t input : inputs) {
      const std::size_t producer = producers_[input];
      if (producer != kNone) rank = std::max(rank, stated_rank(tables_.forward[producer]) + 1);
    }
    return rank == stated_rank(function);
  }
  static std::int64_t stated_rank(const Function& function) {
    const ChainerAttribute* rank = function.find("rank");
    const auto* number = rank == nullptr ? nullptr : held_by<std::int64_t>(rank->value);
    return number == nullptr ? -1 : *number;
  }

  // Returns whether the missing outputs are read by other functions and have no other producer.
  bool are_missed(const std::vector<std::size_t>& outputs,
                  const std::vector<std::size_t>& made) const {
    return std::all_of(outputs.begin(), outputs.end(), [&](std::size_t output) {
      return std::find(made.begin(), made.end(), output) != made.end() ||
             (is_read_[output] != 0 && producers_[output] == kNone);
    });
  }

  // `first` is the line of the list's first element, counted from the record's list of inputs.
  void compare_lists(std::string_view kind, const Function& function, std::size_t first,
                     const std::vector<std::size_t>& says,
                     const std::vector<std::size_t>& should_be) {
    std::size_t differs = 0;
    while (differs < says.size() && differs < should_be.size() &&
           says[differs] == should_be[differs])
      ++differs;
    if (differs == says.size() && differs == should_be.size()) {
      findings_.hold(kind);
      return;
    }
    const auto text = [&](const std::vector<std::size_t>& list) {
      return differs < list.size() ? std::to_string(tables_.variables[list[differs]].id)
                                   : std::string("no more");
    };
    findings_.miss(kind, place_of_input(function, first + differs), text(says), text(should_be));
  }

  void check_attributes(std::size_t k) {
    const Function &forward = tables_.forward[k], &backward = tables_.backward[k];
    for (const ChainerAttribute& attribute : forward.attributes) {
      if (attribute.name == "rank") continue;  // both were compared with the expected rank
      const ChainerAttribute* other = backward.find(attribute.name);
      if (json_text(&attribute) == json_text(other)) {
        findings_.hold("backward: attribute");
      } else {
        differing_.push_back({k, attribute.name});
      }
    }
    for (const ChainerAttribute& attribute : backward.attributes) {
      if (forward.find(attribute.name) == nullptr) differing_.push_back({k, attribute.name});
    }
  }

  void check_sizes() {
    try {
      const ShapeSolution solution = solve_shapes(tables_, source_, {.solution_limit = 1});
      report_differing(!solution.is_solved && has_sense_backwards());
      if (solution.is_solved) {
        compare_sizes(tables_, solution);
      } else if (!blame_attributes() && !blame_one_size(solution)) {
        const std::size_t variable = solution.contradicting_variable;
        findings_.miss("tensor size", place_of_bytes(tables_, variable),
                       concat(tables_.variables[variable].bytes, " bytes"),
                       concat("a size that fits the others: ", solution.contradiction));
      }
      if (solution.is_solved) check_own_records();
    } catch (const Error& error) {
      report_differing(has_sense_backwards());
      miss_at("attribute", error);
    }
  }

  void miss_at(std::string_view kind, const Error& error) {
    const std::size_t line = error.place().find("line ");
    findings_.miss(kind, line == std::string::npos ? error.place() : error.place().substr(line),
                   error.summary(), "something that can be");
  }

  // Returns the tables with the attributes of backward records where the two differ.
  Tables seen_backwards() const {
    Tables other = tables_;
    for (const auto& [k, name] : differing_)
      other.forward[k].attributes = other.backward[k].attributes;
    return other;
  }
  bool has_sense_backwards() {
    if (differing_.empty()) return false;
    try {
      const Tables other = seen_backwards();
      const ShapeSolution solution = solve_shapes(other, source_, {.solution_limit = 1});
      if (!solution.is_solved) return false;
      compare_sizes(other, solution);
      forward_is_wrong_ = true;
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  bool blame_attributes() const { return forward_is_wrong_; }

  // Decides by the sizes which of two differing attributes is wrong.
  void report_differing(bool forward_is_wrong) {
    for (const auto& [k, name] : differing_) {
      const Function& wrong = forward_is_wrong ? tables_.forward[k] : tables_.backward[k];
      const Function& right = forward_is_wrong ? tables_.backward[k] : tables_.forward[k];
      findings_.miss(forward_is_wrong ? "forward: attribute" : "backward: attribute",
                     place_of_attribute(wrong, name),
                     concat(name, " = ", json_text(wrong.find(name))), json_text(right.find(name)));
    }
    differing_.clear();
  }

  void compare_sizes(const Tables& tables, const ShapeSolution& solution) {
    for (std::size_t v = 0; v < tables.variables.size(); ++v) {
      if (!solution.types[v]) continue;
      const Dim bytes = byte_count(*solution.types[v]);
      findings_.compare(
          "tensor size", [&] { return place_of_bytes(tables, v); }, tables.variables[v].bytes,
          bytes.is_constant() ? bytes.constant() : -1);
    }
  }

  // The other sizes determine a single wrong size: reports the first suspect that makes them
  // consistent.
  bool blame_one_size(const ShapeSolution& solution) {
    std::vector<std::size_t> suspects;
    const auto suspect = [&](std::size_t variable) {
      if (variable == kNone || suspects.size() >= kMaxSuspects) return;
      if (std::find(suspects.begin(), suspects.end(), variable) == suspects.end())
        suspects.push_back(variable);
    };
    const auto suspect_all = [&](const Function& function) {
      for (const Input& input : function.inputs) suspect(input.variable);
      for (const std::size_t output : function.outputs) suspect(output);
    };
    suspect(solution.contradicting_variable);
    if (solution.contradicting_function != kNone)
      suspect_all(tables_.forward[solution.contradicting_function]);
    for (std::size_t k = 0; k < suspects.size(); ++k) {
      if (producers_[suspects[k]] != kNone) suspect_all(tables_.forward[producers_[suspects[k]]]);
    }
    std::size_t work = 0;
    for (const bool allows_wide : {false, true}) {
      for (const std::size_t variable : suspects) {
        if (work >= kMaxWork) return false;
        const SolveOptions options{.disbelieved = variable,
                                   .solution_limit = 1,
                                   .allows_wide_integers = allows_wide,
                                   .work_limit = kMaxWork / 4};
        const ShapeSolution other = solve_shapes(tables_, source_, options);
        work += other.work;
        if (!other.is_solved || !other.types[variable]) continue;
        compare_sizes(tables_, other);
        return true;
      }
    }
    return false;
  }

  // Native Tenon records are inferred by building the graph.
  void check_own_records() {
    std::size_t own = 0;
    for (const Function& function : tables_.forward) own += function.find(kOwnOp) != nullptr;
    if (own == 0) return;
    try {
      import_tables(tables_, source_);
      for (std::size_t k = 0; k < own; ++k) findings_.hold("operator");
    } catch (const Error& error) {
      miss_at("operator", error);
    }
  }

  void check_retained() {
    for (std::size_t k = 0; k < tables_.forward.size(); ++k) {
      for (const auto* list : {&tables_.forward, &tables_.backward}) check_retained((*list)[k], k);
    }
  }

  void check_retained(const Function& function, std::size_t k) {
    const Function& forward = tables_.forward[k];
    const std::optional<Retained> says = retained_of(function);
    const auto place = [&](bool of_inputs) {
      return place_of_attribute(
          function, of_inputs ? "_input_indexes_to_retain" : "_output_indexes_to_retain");
    };
    if (!says) {
      findings_.miss("retained", place(true), "no lists of indexes", "lists of indexes");
      return;
    }
    const FunctionView view(tables_, k, source_);
    const auto all_below = [](const std::vector<std::int64_t>& indexes, std::size_t bound) {
      return std::all_of(indexes.begin(), indexes.end(), [&](std::int64_t index) {
        return index >= 0 && index < static_cast<std::int64_t>(bound);
      });
    };
    const std::size_t input_count = std::max(view.input_count(), forward.inputs.size());
    const auto count = function.find("_output_count");
    const auto* output_count = count == nullptr ? nullptr : held_by<std::int64_t>(count->value);
    const bool counts = output_count != nullptr &&
                        *output_count >= static_cast<std::int64_t>(forward.outputs.size());
    const bool is_single = forward.name != "SplitAxis" && forward.find(kOwnOp) == nullptr;
    findings_.require(counts && (!is_single || *output_count == static_cast<std::int64_t>(
                                                                    forward.outputs.size())),
                      "output count", place_of_attribute(function, "_output_count"),
                      json_text(count), std::to_string(forward.outputs.size()));
    findings_.compare(
        "retained index in range", [&] { return place(true); },
        std::string(all_below(says->inputs, input_count) ? "an input" : list_text(says->inputs)),
        std::string("an input"));
    findings_.compare(
        "retained index in range", [&] { return place(false); },
        std::string(all_below(says->outputs, forward.outputs.size()) ? "an output"
                                                                     : list_text(says->outputs)),
        std::string("an output"));
    const FunctionRule* rule = forward.find(kOwnOp) != nullptr ? nullptr : find_rule(forward.name);
    if (rule == nullptr) return;
    std::vector<Retained> known;
    try {
      known = rule->retained(view);
    } catch (const Error& error) {
      miss_at("attribute", error);
      return;
    }
    if (std::find(known.begin(), known.end(), *says) != known.end()) {
      findings_.hold("retained");
      return;
    }
    const bool inputs_differ = says->inputs != known[0].inputs;
    findings_.miss("retained", place(inputs_differ),
                   list_text(inputs_differ ? says->inputs : says->outputs),
                   list_text(inputs_differ ? known[0].inputs : known[0].outputs));
  }

  struct Differing {
    std::size_t function;
    std::string attribute;
  };

  const Tables& tables_;
  std::string_view source_;
  std::vector<std::size_t> producers_;  // by variable
  std::vector<char> is_read_;           // by variable
  Findings findings_;
  std::vector<std::size_t> ranks_;
  std::vector<Differing> differing_;
  bool forward_is_wrong_ = false;
};

}  // namespace

Findings check_tables(const Tables& tables, std::string_view source) {
  return ChainerChecker(tables, source).run();
}

}  // namespace tenon::documents::chainer
