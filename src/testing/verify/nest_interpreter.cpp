#include "testing/verify/nest_interpreter.h"

#include "base/error.h"
#include "nests/index_map.h"
#include "reference/element_math.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace tenon::testing {
namespace {

using nests::Block;
using nests::Bounds;
using nests::LoopNest;
using nests::NestBuffer;
using nests::NestSequence;
using nests::Scalar;
using nests::ScalarKind;
using nests::ScalarNode;
using nests::Statement;
using nests::StorageClass;

// Value of a scalar; the dtype selects the member.
struct Element {
  double real = 0;
  std::int64_t integer = 0;
};

bool is_real(DType dtype) { return is_float(dtype); }

// Applies `f` to both operands in the arithmetic of their type.
template <class F>
auto with_arithmetic(DType dtype, const F& f) {
  if (is_real(dtype)) return f([](const Element& e) { return e.real; });
  if (dtype == DType::U64)
    return f([](const Element& e) { return static_cast<std::uint64_t>(e.integer); });
  return f([](const Element& e) { return e.integer; });
}

Element made(double value) { return {value, 0}; }
Element made(std::int64_t value) { return {0, value}; }
Element made(std::uint64_t value) { return {0, static_cast<std::int64_t>(value)}; }
Element wrapped(DType dtype, Element element) {
  if (reference::needs_wrap(dtype)) element.integer = reference::wrap(dtype, element.integer);
  return element;
}

Element converted(DType from, DType to, const Element& x) {
  if (from == to) return x;
  if (to == DType::Bool) return {0, is_real(from) ? x.real != 0 : x.integer != 0};
  return with_arithmetic(from, [&](const auto& get) {
    const auto value = get(x);
    if (is_real(to)) return made(reference::convert_element<double>(value));
    if (to == DType::U64) return made(reference::convert_element<std::uint64_t>(value));
    return wrapped(to, made(reference::convert_element<std::int64_t>(value)));
  });
}

NestValues unwritten(DType dtype, std::int64_t count) {
  NestValues values{dtype, {}, {}};
  const auto size = static_cast<std::size_t>(count);
  if (is_real(dtype)) {
    values.reals.assign(size, std::numeric_limits<double>::quiet_NaN());
  } else {
    values.integers.assign(size, std::numeric_limits<std::int64_t>::min());
  }
  return values;
}

NestValues values_of(const Tensor& tensor) {
  NestValues values = unwritten(tensor.dtype(), tensor.size());
  for (std::int64_t k = 0; k < tensor.size(); ++k) {
    const auto at = static_cast<std::size_t>(k);
    if (is_real(tensor.dtype())) {
      values.reals[at] = tensor.real_at(k);
    } else {
      values.integers[at] = tensor.integer_at(k);
    }
  }
  return values;
}

std::int64_t bound(const Dim& dim, const DimBindings& symbols) {
  return dim.is_constant() ? dim.constant() : dim.substitute(symbols).constant();
}

// A scalar whose arguments are numbered; shared nodes have one number.
struct Instruction {
  const ScalarNode* node = nullptr;
  std::vector<std::size_t> args;
  std::vector<std::int64_t> view;
};

class NestRun {
 public:
  NestRun(const LoopNest& nest, const std::vector<NestValues*>& buffers, const DimBindings& symbols)
      : nest_(nest), buffers_(buffers), symbols_(symbols) {
    loops_.resize(nest.loop_names.size());
    locals_.resize(nest.locals.size());
    positions_.resize(nest.locals.size());
    for (const Dim& extent : nest.extents) extents_.push_back(bound(extent, symbols));
  }

  bool run() {
    run(nest_.body);
    return has_data_error_;
  }

 private:
  void run(const Block& block) {
    for (const Statement& statement : block) {
      switch (statement.kind) {
        case Statement::Kind::Loop:
          run_loop(statement);
          break;
        case Statement::Kind::Define:
          locals_[statement.id] = value(statement.value);
          positions_[statement.id] = 0;
          break;
        case Statement::Kind::Fold:
          fold(statement);
          break;
        case Statement::Kind::Store:
        case Statement::Kind::Update:
          write(statement);
          break;
      }
    }
  }

  void run_loop(const Statement& loop) {
    std::int64_t count = bound(loop.extent, symbols_);
    if (loop.limit.is_defined()) count = std::min(count, value(loop.limit).integer);
    for (std::int64_t k = 0; k < count; ++k) {
      loops_[loop.id] = k;
      run(loop.body);
    }
  }

  static Element combined(Reduction reduction, DType dtype, const Element& total,
                          const Element& next) {
    if (reduction == Reduction::Last) return next;
    return wrapped(dtype, with_arithmetic(dtype, [&](const auto& get) {
                     return made(reference::combine(reduction, get(total), get(next)));
                   }));
  }

  void fold(const Statement& statement) {
    const DType dtype = nest_.locals[statement.id];
    Element& total = locals_[statement.id];
    const Element next = value(statement.value);
    if (!statement.place.is_defined()) {
      total = combined(statement.reduction, dtype, total, next);
      return;
    }
    const bool is_better = with_arithmetic(dtype, [&](const auto& get) {
      return reference::is_better(statement.reduction, get(total), get(next));
    });
    if (!is_better) return;
    positions_[statement.id] = value(statement.place).integer;
    total = next;
  }

  void write(const Statement& statement) {
    std::vector<std::int64_t> view, at;
    for (const Dim& dim : statement.view) view.push_back(bound(dim, symbols_));
    for (std::size_t k = 0; k < view.size(); ++k) at.push_back(value(statement.indices[k]).integer);
    const std::optional<std::size_t> offset = offset_of(view, at);
    if (!offset) {
      if (statement.bounds == Bounds::Inside) refuse(statement.id);
      has_data_error_ |= statement.bounds == Bounds::Checked;
      return;
    }
    NestValues& buffer = *buffers_[statement.id];
    Element element = value(statement.value);
    if (statement.kind == Statement::Kind::Update)
      element =
          combined(statement.reduction, buffer.dtype, element_at(statement.id, *offset), element);
    if (is_real(buffer.dtype)) {
      if (*offset >= buffer.reals.size()) refuse(statement.id);
      buffer.reals[*offset] = element.real;
    } else {
      if (*offset >= buffer.integers.size()) refuse(statement.id);
      buffer.integers[*offset] = wrapped(buffer.dtype, element).integer;
    }
  }

  Element element_at(std::size_t id, std::size_t offset) const {
    const NestValues& buffer = *buffers_[id];
    if (is_real(buffer.dtype)) {
      if (offset >= buffer.reals.size()) refuse(id);
      return {buffer.reals[offset], 0};
    }
    if (offset >= buffer.integers.size()) refuse(id);
    return {0, buffer.integers[offset]};
  }

  static std::optional<std::size_t> offset_of(const std::vector<std::int64_t>& view,
                                              const std::vector<std::int64_t>& at) {
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < view.size(); ++k) {
      if (at[k] < 0 || at[k] >= view[k]) return std::nullopt;
      offset = offset * view[k] + at[k];
    }
    return static_cast<std::size_t>(offset);
  }

  [[noreturn]] void refuse(std::size_t buffer) const {
    throw Error(concat("an access leaves buffer '", nest_.buffers[buffer].name, "'"));
  }

  // A scalar is evaluated once per statement, however many expressions share it.
  Element value(const Scalar& scalar) {
    ++stamp_;
    return evaluated(number_of(scalar));
  }

  std::size_t number_of(const Scalar& scalar) {
    const auto found = numbers_.find(&scalar.node());
    if (found != numbers_.end()) return found->second;
    Instruction made{&scalar.node(), {}, {}};
    for (const Scalar& arg : scalar->args) made.args.push_back(number_of(arg));
    for (const Dim& dim : scalar->view) made.view.push_back(bound(dim, symbols_));
    code_.push_back(std::move(made));
    values_.emplace_back();
    stamps_.push_back(0);
    return numbers_.emplace(&scalar.node(), code_.size() - 1).first->second;
  }

  Element evaluated(std::size_t number) {
    if (stamps_[number] == stamp_) return values_[number];
    const Element element = computed(code_[number]);
    stamps_[number] = stamp_;
    return values_[number] = element;
  }

  Element computed(const Instruction& code) {
    const ScalarNode& node = *code.node;
    switch (node.kind) {
      case ScalarKind::Integer:
      case ScalarKind::Real:
        return is_real(node.dtype)
                   ? made(node.kind == ScalarKind::Real ? node.real
                                                        : static_cast<double>(node.integer))
                   : made(node.integer);
      case ScalarKind::Loop:
        return made(loops_[node.id]);
      case ScalarKind::Extent:
        return made(extents_[node.id]);
      case ScalarKind::Load:
        return load(code);
      case ScalarKind::Local:
        return locals_[node.id];
      case ScalarKind::Position:
        return made(positions_[node.id]);
      case ScalarKind::Unary:
        return unary(node, evaluated(code.args[0]));
      case ScalarKind::Binary:
        return binary(node, evaluated(code.args[0]), evaluated(code.args[1]));
      case ScalarKind::Select:
        return evaluated(code.args[evaluated(code.args[0]).integer != 0 ? 1 : 2]);
      case ScalarKind::Cast:
        return converted(node.args[0]->dtype, node.dtype, evaluated(code.args[0]));
    }
    return {};
  }

  Element load(const Instruction& code) {
    const ScalarNode& node = *code.node;
    std::vector<std::int64_t> at;
    for (std::size_t k = 0; k < code.view.size(); ++k)
      at.push_back(evaluated(code.args[k]).integer);
    if (const auto offset = offset_of(code.view, at))
      return converted(buffers_[node.id]->dtype, node.dtype, element_at(node.id, *offset));
    if (node.bounds == Bounds::Fill) return evaluated(code.args.back());
    if (node.bounds == Bounds::Inside) refuse(node.id);
    has_data_error_ = true;
    return {};
  }

  static Element unary(const ScalarNode& node, const Element& x) {
    return with_arithmetic(node.args[0]->dtype, [&](const auto& get) {
      if (reference::is_test(node.unary))
        return made(std::int64_t{reference::test_element(node.unary, get(x))});
      return wrapped(node.dtype, made(reference::unary_element(node.unary, get(x))));
    });
  }

  Element binary(const ScalarNode& node, const Element& a, const Element& b) {
    const DType dtype = node.args[0]->dtype;
    if (!is_real(dtype) && b.integer == 0 && divides(node.binary)) {
      has_data_error_ = true;
      return {};
    }
    return with_arithmetic(dtype, [&](const auto& get) {
      if (reference::is_comparison(node.binary))
        return made(std::int64_t{reference::compare_element(node.binary, get(a), get(b))});
      return wrapped(node.dtype, made(reference::binary_element(node.binary, get(a), get(b))));
    });
  }

  static bool divides(BinaryOp op) {
    return op == BinaryOp::Divide || op == BinaryOp::FloorDivide || op == BinaryOp::Modulo ||
           op == BinaryOp::Remainder;
  }

  const LoopNest& nest_;
  const std::vector<NestValues*>& buffers_;
  const DimBindings& symbols_;
  std::vector<std::int64_t> loops_, extents_, positions_;
  std::vector<Element> locals_;
  std::vector<Instruction> code_;
  std::unordered_map<const ScalarNode*, std::size_t> numbers_;
  std::vector<Element> values_;
  std::vector<std::uint64_t> stamps_;
  std::uint64_t stamp_ = 0;
  bool has_data_error_ = false;
};

NestValues packed(const nests::Packing& packing, const Tensor& operand) {
  Tensor target(operand.dtype(), packing.extents);
  nests::pack(packing, operand, target.mutable_bytes().data());
  return values_of(target);
}

NestValues transformed(const nests::WinogradWeights& weights, const Tensor& operand) {
  Tensor target(DType::F32, constants(weights.dims()));
  nests::transform_weights(weights, operand.as<float>().data(),
                           reinterpret_cast<float*>(target.mutable_bytes().data()));
  return values_of(target);
}

double operations_in(const Block& block, const DimBindings& symbols) {
  double count = 0;
  for (const Statement& statement : block) {
    if (statement.kind == Statement::Kind::Loop) {
      count += static_cast<double>(bound(statement.extent, symbols)) *
               operations_in(statement.body, symbols);
    } else {
      count += 1;
      nests::for_each_load(Block{statement}, [&](const Scalar&) { count += 2; });
    }
  }
  return count;
}

}  // namespace

double operation_count(const NestSequence& sequence, const DimBindings& symbols) {
  double count = 0;
  for (const NestSequence::NestCall& part : sequence.parts)
    count += operations_in(part.nest.body, symbols);
  return count;
}

NestResults interpret(const nests::NestWork& work, const std::vector<Tensor>& operands,
                      const DimBindings& symbols) {
  const NestSequence& sequence = work.sequence;
  using Role = NestSequence::BufferRole;
  std::vector<NestValues> values;
  for (const NestSequence::Buffer& buffer : sequence.buffers) {
    if (buffer.role == Role::Operand) {
      values.push_back(values_of(operands.at(buffer.index)));
    } else if (buffer.role == Role::Derived) {
      const nests::WinogradWeights& weights = work.derived.at(buffer.index);
      values.push_back(transformed(weights, operands.at(sequence.buffers[weights.source].index)));
    } else {
      values.push_back(unwritten(buffer.dtype, bound(product(buffer.dims), symbols)));
    }
  }
  NestResults results;
  for (const NestSequence::NestCall& part : sequence.parts) {
    std::vector<NestValues> own;
    own.reserve(part.nest.buffers.size());
    std::vector<NestValues*> buffers;
    std::size_t given = 0;
    for (std::size_t k = 0; k < part.nest.buffers.size(); ++k) {
      const NestBuffer& buffer = part.nest.buffers[k];
      if (buffer.storage == StorageClass::Scratch) {
        own.push_back(unwritten(buffer.dtype, bound(product(buffer.dims), symbols)));
        buffers.push_back(&own.back());
        continue;
      }
      const std::size_t id = part.buffers[given++];
      const auto packing = std::ranges::find(part.packings, k, &nests::Packing::buffer);
      if (packing != part.packings.end()) {
        own.push_back(packed(*packing, operands.at(sequence.buffers[id].index)));
        buffers.push_back(&own.back());
      } else {
        buffers.push_back(&values[id]);
      }
    }
    results.has_data_error |= NestRun(part.nest, buffers, symbols).run();
  }
  for (std::size_t k = 0; k < sequence.buffers.size(); ++k) {
    if (sequence.buffers[k].role == Role::Result) {
      if (results.results.size() <= sequence.buffers[k].index)
        results.results.resize(sequence.buffers[k].index + 1);
      results.results[sequence.buffers[k].index] = std::move(values[k]);
    }
  }
  return results;
}

}  // namespace tenon::testing
