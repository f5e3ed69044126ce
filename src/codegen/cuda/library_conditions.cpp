#include "codegen/cuda/library_conditions.h"

#include "nests/affine.h"

#include <map>
#include <unordered_map>

namespace tenon::codegen::cuda {
namespace {

using nests::Contraction;

// Returns the expression with all locals but one replaced by their definitions.
Scalar inlined(const Scalar& scalar, const std::map<std::size_t, Scalar>& locals,
               std::unordered_map<const ScalarNode*, Scalar>& done) {
  if (scalar->kind == ScalarKind::Local) {
    const auto held = locals.find(scalar->id);
    return held == locals.end() ? scalar : held->second;
  }
  if (scalar->args.empty() || scalar->kind == ScalarKind::Load) return scalar;
  const auto found = done.find(&scalar.node());
  if (found != done.end()) return found->second;
  ScalarNode node = scalar.node();
  for (Scalar& arg : node.args) arg = inlined(arg, locals, done);
  Scalar made(std::make_shared<const ScalarNode>(std::move(node)));
  done.emplace(&scalar.node(), made);
  return made;
}

}  // namespace

LibraryMatch refuse(std::string why) {
  LibraryMatch match;
  match.refusal = std::move(why);
  return match;
}

bool starts_at_zero(const std::vector<Scalar>& indices, std::size_t rank) {
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto affine = nests::affine_of(indices[axis]);
    if (!affine || affine->start != 0) return false;
  }
  return true;
}

std::optional<Statement> only_store(const Contraction& contraction) {
  std::map<std::size_t, Scalar> locals;
  for (std::size_t k = 2; k < contraction.inner->size(); ++k) {
    const Statement& statement = (*contraction.inner)[k];
    std::unordered_map<const ScalarNode*, Scalar> done;
    if (statement.kind == Statement::Kind::Define && k + 1 < contraction.inner->size()) {
      locals[statement.id] = inlined(statement.value, locals, done);
      continue;
    }
    if (statement.kind != Statement::Kind::Store || k + 1 != contraction.inner->size())
      return std::nullopt;
    Statement store = statement;
    store.value = inlined(statement.value, locals, done);
    return store;
  }
  return std::nullopt;
}

bool is_zero(const Scalar& number) {
  return (number->kind == ScalarKind::Real && number->real == 0) || is_integer(number, 0);
}

bool is_zero_outside(const Scalar& load) {
  return load->bounds == Bounds::Inside ||
         (load->bounds == Bounds::Fill && is_zero(load->args.back()));
}

bool starts_from_zero(const Statement& define) { return is_zero(define.value); }

std::string note_types(const LoopNest& nest, const nests::Contraction& contraction,
                       const Statement& store, LibraryCall& call) {
  const DType a = nest.buffers[contraction.a->id].dtype, b = nest.buffers[contraction.b->id].dtype,
              y = nest.buffers[store.id].dtype;
  if (is_integer(a) && is_integer(b)) return "whole numbers";
  if (a != b || (a != DType::F32 && a != DType::F16 && a != DType::BF16))
    return "operands of different types";
  if (y != a && y != DType::F32) return "a result of another type";
  call.dtype = to_string(a);
  call.result_dtype = to_string(y);
  return "";
}

}  // namespace tenon::codegen::cuda
