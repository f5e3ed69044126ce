// A node of a random operator: operands from an example or guessed, attributes by their kind and
// name.
#include "base/error.h"
#include "base/text.h"
#include "ops/definition/registry.h"
#include "testing/random_graph/graph_maker.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tenon::testing {
namespace {

class NodeMaker {
 public:
  NodeMaker(GraphMaker& maker, const OpDef& op) : maker_(maker), random_(maker.random), op_(op) {
    operands_.resize(op.operands.size());
  }

  void run() {
    if (!op_.examples.empty() && random_.chance(85)) {
      follow(random_.pick(op_.examples));
    } else {
      guess_operands();
    }
    guess_attributes();
    make_some_dynamic();
    add();
  }

 private:
  // Examples.

  void follow(std::string_view example) {
    chosen_float_ = maker_.any_float();
    chosen_any_ = maker_.any_dtype();
    bool is_first = true;
    for (const std::string& part : split(example, ';')) {
      const std::size_t equals = part.find(" = "), colon = part.find(':');
      if (equals != std::string::npos) {
        example_attribute(std::string(trim(part.substr(0, equals))),
                          std::string(trim(part.substr(equals + 3))));
        continue;
      }
      const std::vector<std::string> name_and_count =
          split(std::string(trim(part.substr(0, colon))), '*');
      const std::size_t count = name_and_count.size() > 1
                                    ? static_cast<std::size_t>(*parse_integer(name_and_count[1]))
                                    : 1;
      const auto position = op_.operand_index(name_and_count[0]);
      TENON_ASSERT(position, concat("an example names an operand of ", op_.name));
      if (op_.operands[*position].is_optional && random_.chance(25)) continue;
      std::vector<std::string> words = split(std::string(trim(part.substr(colon + 1))), ' ');
      for (std::size_t k = 0; k < count; ++k) place(*position, example_operand(words, is_first));
      is_first = false;
    }
  }

  ValueId example_operand(const std::vector<std::string>& words, bool is_first) {
    const std::size_t rank = words.size() - 1;
    const bool is_open = words[0] == "T" || words[0] == "F";
    // The first operand may be an existing value, whose extents then determine the others.
    if (is_first && is_open && random_.chance(75)) {
      const auto found = maker_.find([&](const TensorType& type) {
        if (type.rank() != rank || (words[0] == "F" && !is_float(type.dtype))) return false;
        for (std::size_t k = 0; k < rank; ++k) {
          const auto number = parse_integer(words[k + 1]);
          if (number && !(type.dims[k] == Dim(*number))) return false;
        }
        return true;
      });
      if (found) {
        const TensorType type = *maker_.tensor_type(*found);
        (words[0] == "F" ? chosen_float_ : chosen_any_) = type.dtype;
        for (std::size_t k = 0; k < rank; ++k) letters_.emplace(words[k + 1], type.dims[k]);
        return *found;
      }
    }
    Dims dims;
    for (std::size_t k = 0; k < rank; ++k) dims.push_back(extent_of(words[k + 1]));
    const DType dtype = dtype_of(words[0]);
    if (words[0] == "I") return maker_.new_value(dtype, dims);
    return maker_.value_of(dtype, dims);
  }

  Dim extent_of(const std::string& word) {
    if (const auto number = parse_integer(word)) return *number;
    const auto found = letters_.find(word);
    if (found != letters_.end()) return found->second;
    return letters_.emplace(word, maker_.any_extent()).first->second;
  }

  DType dtype_of(const std::string& word) {
    if (word == "T") return chosen_any_;
    if (word == "F") return chosen_float_;
    if (word == "I") return random_.chance(75) ? DType::I64 : DType::I32;
    if (word == "B") return DType::Bool;
    return *parse_dtype(word);
  }

  void example_attribute(const std::string& name, const std::string& text) {
    const AttrDef* def = op_.find_attr(name);
    TENON_ASSERT(def, concat("an example names an attribute of ", op_.name));
    const auto number = [&](const std::string& word) -> Dim {
      return word == "_" ? Dim(random_.between(0, 2)) : extent_of(word);
    };
    switch (def->kind) {
      case AttrKind::Integer:
        attrs_.set(name, number(text));
        break;
      case AttrKind::Integers: {
        Dims dims;
        for (const std::string& word : split(text, ' ')) dims.push_back(number(word));
        attrs_.set(name, dims);
        break;
      }
      case AttrKind::Reals: {
        std::vector<double> reals;
        for (const std::string& word : split(text, ' ')) reals.push_back(*parse_real(word));
        attrs_.set(name, reals);
        break;
      }
      case AttrKind::Element:
        attrs_.set(name, *parse_dtype(text));
        break;
      case AttrKind::Text:
        attrs_.set(name, *unquote(text));
        break;
      default:
        TENON_ASSERT(false, "an example gives numbers, an element type or a text");
    }
  }

  // Guesses.

  void guess_operands() {
    for (std::size_t k = 0; k < op_.operands.size(); ++k) {
      const OperandDef& def = op_.operands[k];
      if (def.is_dynamic_attribute || (def.is_optional && random_.chance(60))) continue;
      const std::size_t count = def.is_variadic ? 1 + random_.below(3) : 1;
      for (std::size_t n = 0; n < count; ++n) place(k, guessed_operand(def));
    }
  }

  ValueId guessed_operand(const OperandDef& def) {
    if (def.name == "sequence") return sequence();
    if (def.name == "position" || def.name == "positions")
      return maker_.constant_of(DType::I64, {}, TrialKind::Ordinary);
    if (def.name == "condition") return like_first(DType::Bool);
    if (!first_) return maker_.any_tensor();
    const TensorType* first = maker_.tensor_type(first_);
    if (!first || random_.chance(5)) return maker_.any_tensor();
    return like_first(first->dtype);
  }

  // Returns a value with the first operand's extents, or with extents that broadcast with it.
  ValueId like_first(DType dtype) {
    const TensorType* first = first_ ? maker_.tensor_type(first_) : nullptr;
    if (!first) return maker_.value_of(dtype, maker_.any_dims(4));
    Dims dims = first->dims;
    if (random_.chance(15)) dims = {};
    if (random_.chance(25) && !dims.empty()) {
      dims.erase(dims.begin(),
                 dims.begin() + static_cast<std::ptrdiff_t>(random_.below(dims.size() + 1)));
    }
    if (random_.chance(25) && !dims.empty()) dims[random_.below(dims.size())] = 1;
    // The first operand may be the broadcast one.
    for (Dim& dim : dims) {
      if (dim == Dim(1) && random_.chance(20)) dim = maker_.any_extent();
    }
    if (random_.chance(8)) dims.insert(dims.begin(), maker_.any_extent());
    return maker_.value_of(dtype, dims);
  }

  ValueId sequence() {
    for (ValueId value : maker_.usable()) {
      if (maker_.graph().value(value).type.kind() == Type::Kind::Sequence && random_.chance(70))
        return value;
    }
    const ValueId item = maker_.any_tensor();
    const TensorType* type = maker_.tensor_type(item);
    std::vector<Var> items(1 + random_.below(3), Var(&maker_.build(), item.index()));
    if (type && random_.chance(50))
      items.back() = Var(&maker_.build(), maker_.value_of(type->dtype, type->dims).index());
    const Var made = maker_.build().call("sequence_construct", items);
    maker_.run_new_nodes();
    return ValueId(made.id());
  }

  void place(std::size_t position, ValueId value) {
    if (!first_) first_ = value;
    if (op_.operands[position].is_variadic && position < operands_.size() && operands_[position]) {
      operands_.push_back(value);
    } else {
      operands_[position] = value;
    }
  }

  void guess_attributes() {
    for (const AttrDef& def : op_.attrs) {
      if (attrs_.find(def.name)) continue;
      if (!def.is_required && !random_.chance(35)) continue;
      if (auto value = guessed_attribute(def)) attrs_.set(def.name, std::move(*value));
    }
  }

  std::size_t first_rank() const {
    const TensorType* type = first_ ? maker_.tensor_type(first_) : nullptr;
    return type ? type->rank() : 2;
  }

  std::optional<AttrValue> guessed_attribute(const AttrDef& def) {
    switch (def.kind) {
      case AttrKind::Bool:
        return random_.chance(50);
      case AttrKind::Word:
        return random_.pick(def.words);
      case AttrKind::Element:
        return maker_.any_dtype();
      case AttrKind::Real: {
        static const std::vector<double> reals = {0, 0.5, 1, -1, 2, 1e-5, 0.25};
        return random_.pick(reals);
      }
      case AttrKind::Integer:
        return guessed_integer(def.name);
      case AttrKind::Integers:
        return guessed_integers(def.name);
      case AttrKind::Reals: {
        std::vector<double> reals(first_rank());
        for (double& real : reals) real = random_.chance(50) ? 1 : 2;
        return reals;
      }
      case AttrKind::Type:
        return Type(TensorType{DType::F32, {2}, {}});
      default:
        return std::nullopt;  // strings have fixed meanings
    }
  }

  Dim guessed_integer(const std::string& name) {
    const auto rank = static_cast<std::int64_t>(first_rank());
    if (name.find("axis") != std::string::npos) return random_.between(-rank, rank);
    if (name == "start" || name == "end") return random_.between(-2, 2);
    return random_.between(0, 3);
  }

  Dims guessed_integers(const std::string& name) {
    const std::size_t rank = first_rank();
    Dims axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    for (std::size_t k = axes.size(); k > 1; --k) std::swap(axes[k - 1], axes[random_.below(k)]);
    if (name == "perm") return axes;
    if (name == "axes") {
      if (axes.size() > 1) axes.resize(1 + random_.below(axes.size()));
      if (random_.chance(30)) {
        for (Dim& axis : axes) axis = axis - Dim(static_cast<std::int64_t>(rank));
      }
      return axes;
    }
    if (name == "shape") return guessed_shape();
    const std::size_t spatial = rank > 2 ? rank - 2 : 1;
    std::size_t count = 1 + random_.below(std::max<std::size_t>(1, rank));
    std::int64_t low = 0, high = 2;
    if (name == "strides" || name == "dilations" || name == "kernel_shape")
      count = spatial, low = 1;
    if (name == "pads") count = op_.find_attr("strides") ? 2 * spatial : 2 * rank;
    if (name == "repeats") count = rank, low = 0;
    if (name == "steps") low = 1;
    if (const AttrValue* starts = attrs_.find("starts")) count = std::get<Dims>(*starts).size();
    if (name == "ends") high = 5;
    Dims numbers(count);
    for (Dim& number : numbers) number = random_.between(low, high);
    if (name == "starts" && random_.chance(30)) numbers[0] = -2;
    return numbers;
  }

  Dims guessed_shape() {
    const TensorType* type = first_ ? maker_.tensor_type(first_) : nullptr;
    if (!type) return maker_.any_dims(3);
    Dims shape = type->dims;
    std::reverse(shape.begin(), shape.end());
    if (random_.chance(50) && shape.size() > 1) {
      shape[0] = shape[0] * shape[1];
      shape.erase(shape.begin() + 1);
    }
    if (random_.chance(30)) shape.insert(shape.begin(), 1);
    if (random_.chance(40) && !shape.empty()) shape[random_.below(shape.size())] = -1;
    return shape;
  }

  // Turns some attributes into operands (dynamic attributes) of known value.
  void make_some_dynamic() {
    for (std::size_t k = 0; k < op_.operands.size(); ++k) {
      const OperandDef& def = op_.operands[k];
      if (!def.is_dynamic_attribute || !random_.chance(30)) continue;
      const AttrValue* value = attrs_.find(def.name);
      if (!value) continue;
      std::optional<Tensor> tensor;
      if (const auto* dims = std::get_if<Dims>(value); dims && all_constant(*dims)) {
        tensor = Tensor::of_integers(constants(*dims));
      } else if (const auto* dim = std::get_if<Dim>(value); dim && dim->is_constant()) {
        tensor = Tensor::of<std::int64_t>(DType::I64, {}, {dim->constant()});
      } else if (const auto* reals = std::get_if<std::vector<double>>(value)) {
        tensor = Tensor::of<double>(DType::F32, {static_cast<std::int64_t>(reals->size())}, *reals);
      }
      if (!tensor) continue;
      operands_[k] = ValueId(maker_.build().constant(Constant(*tensor)).id());
      attrs_.erase(def.name);
      maker_.run_new_nodes();
    }
  }

  void add() {
    Graph::NewNode node;
    node.op = &op_;
    node.operands = operands_;
    while (!node.operands.empty() && !node.operands.back()) node.operands.pop_back();
    node.attrs = attrs_;
    for (const ResultDef& result : op_.results) {
      if (result.is_variadic) {
        const AttrValue* sizes = attrs_.find("sizes");
        node.results.resize(sizes ? std::get<Dims>(*sizes).size() : 1 + random_.below(3));
      } else {
        node.results.push_back(result.is_optional && random_.chance(40) ? "_" : "");
      }
    }
    maker_.graph().add_node(std::move(node));
  }

  GraphMaker& maker_;
  Random& random_;
  const OpDef& op_;
  std::vector<ValueId> operands_;
  ValueId first_;
  Attributes attrs_;
  std::map<std::string, Dim> letters_;
  DType chosen_float_ = DType::F32, chosen_any_ = DType::F32;
};

/// Random operands do not work for encoded images and ops with bodies (some motifs have bodies).
bool is_left_to_others(const OpDef& op) {
  return op.examples.size() == 1 && op.examples.front() == "-";
}

}  // namespace

void add_random_node(GraphMaker& maker) {
  const std::vector<const OpDef*>& ops = all_ops().all();
  const OpDef* op = nullptr;
  do {
    op = maker.random.pick(ops);
  } while (is_left_to_others(*op));
  // Most guesses are refused; tries an operator a few times before the next one.
  for (int attempt = 0; attempt < 6; ++attempt) {
    try {
      const std::size_t usable = maker.usable_node_count();
      NodeMaker(maker, *op).run();
      maker.run_new_nodes();
      if (maker.usable_node_count() > usable) return;
    } catch (const Error&) {
    }
  }
}

}  // namespace tenon::testing
