#include "ops/families/body_types.h"

#include "base/error.h"

#include <algorithm>

namespace tenon::inline ops {
namespace {

// Returns whether a value could have both types.
bool may_be_both(const Type& a, const Type& b) {
  if (!a.is_known() || !b.is_known()) return true;
  if (a.kind() != b.kind()) return false;
  if (!a.is_tensor()) return may_be_both(a.element(), b.element());
  if (a.tensor().dtype != b.tensor().dtype || a.tensor().rank() != b.tensor().rank()) return false;
  for (std::size_t axis = 0; axis < a.tensor().rank(); ++axis) {
    // A query without an assumption: the executor of a body checks its inputs against their types.
    if (provably_different(a.tensor().dims[axis], b.tensor().dims[axis])) return false;
  }
  return true;
}

Type rewrapped(const Type& like, Type element) {
  return like.kind() == Type::Kind::Sequence ? Type::sequence(std::move(element))
                                             : Type::optional(std::move(element));
}

}  // namespace

BodyTypes::BodyTypes(std::string_view op, const OperandTypes& in, std::size_t body,
                     const std::vector<Type>& inputs)
    : in_(in), body_(in.bodies().at(body)) {
  if (body_.inputs().size() != inputs.size()) {
    throw Error(concat(op, ": a body takes another number of inputs"))
        .expected(inputs.size(), " inputs")
        .got(body_.inputs().size());
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Value& input = body_.value(body_.inputs()[k]);
    if (!may_be_both(input.type, inputs[k])) {
      throw Error(
          concat(op, ": input '", input.name, "' of a body has another type than its operand"))
          .expected(inputs[k])
          .got(input.type);
    }
    bind(input.type, inputs[k]);
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    bind_alike(body_.value(body_.inputs()[k]).type, inputs[k]);
  }
}

void BodyTypes::bind(const Type& declared, const Type& given) {
  if (!declared.is_known() || !given.is_known()) return;
  if (!declared.is_tensor()) return bind(declared.element(), given.element());
  for (std::size_t axis = 0; axis < declared.tensor().rank(); ++axis) {
    const std::optional<std::string> symbol = declared.tensor().dims[axis].symbol_name();
    if (symbol) bindings_.try_emplace(*symbol, given.tensor().dims[axis]);
  }
}

// Binds an extent that has the same expression in the body and at the caller although none of its
// symbols occurs alone. The remaining symbols are taken over from the caller: any other values that
// give this extent give the same outputs.
void BodyTypes::bind_alike(const Type& declared, const Type& given) {
  if (!declared.is_known() || !given.is_known()) return;
  if (!declared.is_tensor()) return bind_alike(declared.element(), given.element());
  for (std::size_t axis = 0; axis < declared.tensor().rank(); ++axis) {
    const Dim &inner = declared.tensor().dims[axis], &outer = given.tensor().dims[axis];
    SymbolRanges asked, bound;
    inner.collect_symbols(asked);
    outer.collect_symbols(bound);
    DimBindings tried = bindings_;
    for (const auto& [name, range] : bound) {
      if (asked.contains(name)) tried.try_emplace(name, Dim::symbol(name, range));
    }
    const bool is_known =
        std::ranges::all_of(asked, [&](const auto& entry) { return tried.contains(entry.first); });
    if (is_known && inner.substitute(tried) == outer) bindings_ = std::move(tried);
  }
}

Type BodyTypes::output(std::size_t position) {
  const Type& type = body_.value(body_.outputs().at(position)).type;
  const Type* innermost = &type;
  while (innermost->is_known() && !innermost->is_tensor()) innermost = &innermost->element();
  if (!innermost->is_known()) return type;
  SymbolRanges symbols;
  for (const Dim& dim : innermost->tensor().dims) dim.collect_symbols(symbols);
  for (const auto& [name, range] : symbols) {
    if (bindings_.contains(name)) continue;
    bindings_.emplace(name, has_outer_symbols_ ? Dim::symbol(name, range) : in_.unknown());
  }
  return substitute(type, bindings_);
}

std::vector<Type> BodyTypes::outputs() {
  std::vector<Type> types;
  for (std::size_t k = 0; k < output_count(); ++k) types.push_back(output(k));
  return types;
}

std::vector<Type> carried_types(std::string_view op, const OperandTypes& in, std::size_t body,
                                const std::vector<Type>& before, std::vector<Type> initial,
                                const std::vector<Type>& after, std::size_t first_output) {
  // Fixed-point iteration. Each round makes at least one extent (or rank) permanently unknown, so
  // it terminates.
  std::vector<std::vector<bool>> varies(initial.size());
  for (bool is_stable = false; !is_stable;) {
    is_stable = true;
    std::vector<Type> inputs = before;
    inputs.insert(inputs.end(), initial.begin(), initial.end());
    inputs.insert(inputs.end(), after.begin(), after.end());
    BodyTypes types(op, in, body, inputs);
    for (std::size_t k = 0; k < initial.size(); ++k) {
      const Type next = types.output(first_output + k);
      if (!initial[k].is_known() || next == initial[k]) continue;
      if (!initial[k].is_tensor() || !next.is_tensor()) {
        // The element type of a sequence converges in one round or becomes unknown.
        Type joined = join_types(op, initial[k], next, in);
        if (joined == initial[k]) continue;
        if (!varies[k].empty()) joined = joined.is_known() ? rewrapped(joined, {}) : joined;
        is_stable = joined == initial[k];
        initial[k] = std::move(joined);
        varies[k].assign(1, true);
        continue;
      }
      TensorType& now = initial[k].tensor();
      if (now.dtype != next.tensor().dtype) join_types(op, initial[k], next, in);  // throws
      if (now.rank() != next.tensor().rank()) {
        initial[k] = Type{};
        is_stable = false;
        continue;
      }
      varies[k].resize(now.rank());
      for (std::size_t axis = 0; axis < now.rank(); ++axis) {
        if (varies[k][axis] || now.dims[axis] == next.tensor().dims[axis]) continue;
        now.dims[axis] = in.unknown();
        varies[k][axis] = true;
        is_stable = false;
      }
    }
  }
  return initial;
}

Type join_types(std::string_view op, const Type& a, const Type& b, const OperandTypes& in) {
  if (!a.is_known() || !b.is_known()) return {};
  if (a == b) return a;
  // An optional joined with a plain value: only the data determines which of them occurs.
  if (a.kind() == Type::Kind::Optional && b.kind() != a.kind()) {
    join_types(op, a.element(), b, in);
    return {};
  }
  if (b.kind() == Type::Kind::Optional && a.kind() != b.kind()) return join_types(op, b, a, in);
  const bool differ_in_dtype =
      a.is_tensor() && b.is_tensor() && a.tensor().dtype != b.tensor().dtype;
  if (a.kind() != b.kind() || differ_in_dtype) {
    throw Error(concat(op, ": one value would have two types")).got(a, " and ", b);
  }
  if (!a.is_tensor()) return rewrapped(a, join_types(op, a.element(), b.element(), in));
  if (a.tensor().rank() != b.tensor().rank()) return {};
  TensorType joined{a.tensor().dtype, {}, {}};
  for (std::size_t axis = 0; axis < a.tensor().rank(); ++axis) {
    const Dim &left = a.tensor().dims[axis], &right = b.tensor().dims[axis];
    joined.dims.push_back(left == right ? left : in.unknown());
  }
  return joined;
}

Type stacked_type(std::string_view op, const Type& slice, std::int64_t axis, const Dim& extent) {
  if (!slice.is_known()) return {};
  if (!slice.is_tensor()) throw Error(concat(op, ": only tensors can be stacked")).got(slice);
  TensorType type{slice.tensor().dtype, slice.tensor().dims, {}};
  const std::size_t position = normal_axis(op, axis, type.rank() + 1);
  type.dims.insert(type.dims.begin() + static_cast<std::ptrdiff_t>(position), extent);
  return type;
}

Tensor empty_stack(const Type& stacked) {
  if (!stacked.is_tensor()) return Tensor(DType::F32, {0});
  Shape shape;
  for (const Dim& dim : stacked.tensor().dims) shape.push_back(dim.value().value_or(0));
  return Tensor(stacked.tensor().dtype, std::move(shape));
}

}  // namespace tenon::inline ops
