#include "documents/chainer/solver.h"

#include "documents/chainer/functions.h"

#include <algorithm>

namespace tenon::documents::chainer {
namespace {

constexpr std::size_t kMaxCompletions = 20'000;
// Cost of listing the divisors of a number, in evaluations of a relation.
constexpr std::size_t kListingWork = 50;
// Extents tried without an upper bound.
constexpr std::int64_t kMaxBlindExtent = 64;

class Solver {
 public:
  Solver(const Tables& tables, std::string_view source, const SolveOptions& options,
         DType integer_dtype)
      : tables_(tables),
        source_(source),
        options_(options),
        shapes_(tables.variables.size()),
        dtypes_(tables.variables.size(), DType::F32),
        layouts_(tables.variables.size()),
        readers_(tables.variables.size()),
        order_(topological_order(tables)) {
    prepare_relations(integer_dtype);
  }

  ShapeSolution solve() {
    solution_.types.resize(tables_.variables.size());
    if (!start()) {
      note_conflict();
      return std::move(solution_);
    }
    bool is_consistent = true;
    while (true) {
      if (is_consistent) {
        if (!choose()) {
          keep_solution();
          if (++found_ >= options_.solution_limit) break;
        }
      } else {
        note_conflict();
      }
      if (solution_.work >= options_.work_limit) {
        solution_.is_cut_off = true;
        break;
      }
      if (!try_next(is_consistent)) break;
    }
    return std::move(solution_);
  }

 private:
  struct Branch {
    std::size_t variable = 0;
    std::vector<Shape> shapes;
    std::size_t next = 0, mark = 0;
    std::size_t place = 0;  // function index; past the end for late guesses
  };

  // Types that a record states.
  void pin(const FunctionView& view, std::string_view attribute,
           const std::vector<std::size_t>& variables) {
    const ChainerAttribute* stated = view.function().find(attribute);
    if (stated == nullptr) return;
    const auto* list = held_by<frontends::JsonValue::Array>(stated->value);
    if (list == nullptr || list->size() != variables.size()) {
      throw view.error(attribute, concat("'", attribute, "' has no type for each variable"));
    }
    for (std::size_t k = 0; k < list->size(); ++k) {
      const auto* text = held_by<std::string>((*list)[k]);
      if (text == nullptr) throw view.error(attribute, concat("'", attribute, "' holds types"));
      Type type;
      try {
        type = parse_type(*text);
      } catch (const Error& error) {
        throw view.error(attribute, error.summary()).got(*text);
      }
      if (!type.is_tensor() || !all_constant(type.tensor().dims)) {
        throw view.error(attribute, "only types of tensors with known extents have a size")
            .got(*text);
      }
      dtypes_[variables[k]] = type.tensor().dtype;
      layouts_[variables[k]] = type.tensor().layout;
      pins_.emplace_back(variables[k], constants(type.tensor().dims));
      is_pinned_[variables[k]] = 1;
    }
  }

  void prepare_relations(DType integer_dtype) {
    relations_.resize(tables_.forward.size());
    is_pinned_.assign(tables_.variables.size(), 0);
    for (const std::size_t k : order_) {
      const FunctionView view(tables_, k, source_);
      const Function& function = view.function();
      std::vector<std::size_t> listed;
      for (const Input& input : function.inputs) listed.push_back(input.variable);
      pin(view, kInputTypes, listed);
      pin(view, kOutputTypes, function.outputs);
      for (const std::size_t input : listed) readers_[input].push_back(k);
      for (const std::size_t output : function.outputs) readers_[output].push_back(k);
      if (function.find(kOwnOp) != nullptr) continue;
      const FunctionRule* rule = find_rule(function.name);
      if (rule == nullptr) {
        solution_.unknown_functions.push_back(k);
        continue;
      }
      const std::size_t count = view.input_count();
      if (count < rule->least_inputs || count > rule->most_inputs || function.outputs.empty() ||
          (function.outputs.size() > 1 && function.name != "SplitAxis")) {
        throw Error(concat("the function ", function.name, " does not have ", count, " inputs and ",
                           function.outputs.size(), " outputs"))
            .at(source_, ", ", place_of(function.line + 1, 1));
      }
      if (rule->integer_input != kNone && rule->integer_input < count &&
          is_pinned_[view.input(rule->integer_input)] == 0) {
        dtypes_[view.input(rule->integer_input)] = integer_dtype;
      }
      relations_[k] = rule->relate(view);
    }
  }

  bool start() {
    for (std::size_t v = 0; v < tables_.variables.size(); ++v) {
      if (v == options_.disbelieved) continue;
      const std::int64_t bits = tables_.variables[v].bytes * 8, width = info(dtypes_[v]).bits;
      if (width == 0) continue;
      if (bits % width != 0 && width >= 8) {
        return shapes_.refuse(v, concat("its size is no multiple of ", width / 8, " bytes"));
      }
      if (width >= 8) shapes_.set_count(v, bits / width);
    }
    for (const auto& [variable, shape] : pins_) {
      if (!shapes_.set_shape(variable, shape)) return false;
    }
    queued_.assign(tables_.forward.size(), 0);
    for (const std::size_t k : order_) enqueue(k);
    if (!propagate()) return false;
    find_batch();
    return true;
  }

  // Guesses the batch extent: the first known extent of an input, or of a matrix.
  void find_batch() {
    const auto consider = [&](std::size_t variable) {
      if (batch_ == PartialShapes::kUnknown && shapes_.rank(variable) > 0)
        batch_ = shapes_.extent(variable, 0);
    };
    for (std::size_t v = 0; v < tables_.variables.size(); ++v) {
      if (tables_.variables[v].is_input()) consider(v);
    }
    for (const std::size_t k : order_) {
      for (const std::size_t output : tables_.forward[k].outputs) {
        if (shapes_.rank(output) == 2) consider(output);
      }
    }
  }

  void enqueue(std::size_t function) {
    if (queued_[function] != 0 || !relations_[function]) return;
    queued_[function] = 1;
    queue_.push_back(function);
  }

  bool propagate() {
    bool holds = true;
    while (holds && !queue_.empty()) {
      current_ = queue_.front();
      queue_.pop_front();
      queued_[current_] = 0;
      solution_.work += 1 + tables_.forward[current_].inputs.size() / 4;
      holds = relations_[current_](shapes_);
      for (const std::size_t variable : shapes_.take_changed()) {
        for (const std::size_t reader : readers_[variable]) enqueue(reader);
      }
    }
    clear_queue();
    return holds;
  }

  void clear_queue() {
    for (const std::size_t function : queue_) queued_[function] = 0;
    queue_.clear();
  }

  // Returns candidate shapes of a variable; empty if they cannot be enumerated.
  std::vector<Shape> possibilities(std::size_t variable) {
    if (shapes_.rank(variable) < 0 || !shapes_.count(variable)) return {};
    std::vector<Shape> all =
        completions(shapes_.extents(variable), *shapes_.count(variable), kMaxCompletions);
    solution_.work += kListingWork + all.size();
    if (batch_ != PartialShapes::kUnknown && !tables_.variables[variable].is_parameter()) {
      std::stable_partition(all.begin(), all.end(),
                            [&](const Shape& shape) { return shape[0] == batch_; });
    }
    return all;
  }

  // Chooses the next variable to guess; false if all shapes are known.
  bool choose() {
    Branch choice;
    if (!stack_.empty()) {
      choice.place = stack_.back().place;
      choice.variable = stack_.back().variable;
    }
    if (!choose_counted(choice) && !choose_last(choice)) return false;
    choice.mark = shapes_.mark();
    stack_.push_back(std::move(choice));
    return true;
  }

  // Chooses the variable with the fewest candidates at the earliest function that has one.
  bool choose_counted(Branch& choice) {
    for (; choice.place < order_.size(); ++choice.place) {
      const Function& function = tables_.forward[order_[choice.place]];
      const auto consider = [&](std::size_t variable) {
        if (shapes_.is_complete(variable)) return;
        std::vector<Shape> shapes = possibilities(variable);
        if (shapes.empty() || (!choice.shapes.empty() && shapes.size() >= choice.shapes.size())) {
          return;
        }
        choice.variable = variable;
        choice.shapes = std::move(shapes);
      };
      for (const Input& input : function.inputs) consider(input.variable);
      for (const std::size_t output : function.outputs) consider(output);
      if (!choice.shapes.empty()) return true;
    }
    return false;
  }

  // Remaining variables: those between elementwise functions only, where axes do not matter, and
  // the one with distrusted bytes. Chooses one after the other.
  bool choose_last(Branch& choice) const {
    const bool is_first = stack_.empty() || stack_.back().place < order_.size();
    for (std::size_t v = is_first ? 0 : choice.variable + 1; v < tables_.variables.size(); ++v) {
      if (shapes_.is_complete(v)) continue;
      choice.variable = v;
      if (shapes_.rank(v) < 0 && shapes_.count(v) && solution_.unknown_functions.empty()) {
        choice.shapes = {{*shapes_.count(v)}};
        return true;
      }
      if (shapes_.rank(v) < 0 || shapes_.count(v)) continue;
      for (std::int64_t extent = 1; extent <= kMaxBlindExtent; ++extent) {
        Shape shape = shapes_.extents(v);
        std::replace(shape.begin(), shape.end(), PartialShapes::kUnknown, extent);
        choice.shapes.push_back(std::move(shape));
      }
      return true;
    }
    return false;
  }

  // Backtracks to the next candidate of the innermost choice; false when all are exhausted.
  bool try_next(bool& is_consistent) {
    while (!stack_.empty()) {
      Branch& choice = stack_.back();
      shapes_.undo_to(choice.mark);
      if (choice.next < choice.shapes.size()) {
        ++solution_.attempts;
        is_consistent = shapes_.set_shape(choice.variable, choice.shapes[choice.next++]);
        current_ = choice.place < order_.size() ? order_[choice.place] : kNone;
        for (const std::size_t variable : shapes_.take_changed()) {
          for (const std::size_t reader : readers_[variable]) enqueue(reader);
        }
        if (is_consistent) {
          is_consistent = propagate();
        } else {
          clear_queue();
        }
        return true;
      }
      stack_.pop_back();
    }
    return false;
  }

  // The failed attempt with the most known facts provides the message.
  void note_conflict() {
    if (solution_.is_solved || shapes_.mark() < furthest_ ||
        (furthest_ > 0 && shapes_.mark() == furthest_))
      return;
    furthest_ = shapes_.mark();
    solution_.contradicting_variable = shapes_.conflict().variable;
    solution_.contradicting_function = current_;
    solution_.contradiction = shapes_.conflict().reason;
  }

  void keep_solution() {
    if (solution_.is_solved) {
      solution_.is_ambiguous = true;
      return;
    }
    solution_.is_solved = true;
    solution_.contradicting_variable = solution_.contradicting_function = kNone;
    solution_.contradiction.clear();
    for (std::size_t v = 0; v < tables_.variables.size(); ++v) {
      if (!shapes_.is_complete(v)) continue;
      const Shape& shape = shapes_.extents(v);
      solution_.types[v] = TensorType{dtypes_[v], Dims(shape.begin(), shape.end()), layouts_[v]};
    }
  }

  const Tables& tables_;
  std::string_view source_;
  SolveOptions options_;
  PartialShapes shapes_;
  std::vector<DType> dtypes_;
  std::vector<Layout> layouts_;
  std::vector<std::vector<std::size_t>> readers_;  // adjacent functions of each variable
  std::vector<std::size_t> order_;
  std::vector<Relation> relations_;
  std::vector<std::pair<std::size_t, Shape>> pins_;
  std::vector<char> is_pinned_;
  std::deque<std::size_t> queue_;
  std::vector<char> queued_;
  std::vector<Branch> stack_;
  std::int64_t batch_ = PartialShapes::kUnknown;  // guessed first extent of images
  std::size_t current_ = kNone, found_ = 0, furthest_ = 0;
  ShapeSolution solution_;
};

}  // namespace

ShapeSolution solve_shapes(const Tables& tables, std::string_view source,
                           const SolveOptions& options) {
  ShapeSolution solution = Solver(tables, source, options, DType::I32).solve();
  if (solution.is_solved || !options.allows_wide_integers) return solution;
  // Class indices have 64 bits as often as 32.
  ShapeSolution wider = Solver(tables, source, options, DType::I64).solve();
  wider.work += solution.work;
  solution.work = wider.work;
  return wider.is_solved ? wider : solution;
}

}  // namespace tenon::documents::chainer
