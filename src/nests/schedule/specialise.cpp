#include "nests/schedule/specialise.h"

#include "nests/affine.h"
#include "nests/index_map.h"

#include <algorithm>

namespace tenon::nests {
namespace {

void fix(LoopNest& nest, const DimBindings& values) {
  for (NestBuffer& buffer : nest.buffers) buffer.dims = substitute(buffer.dims, values);
  const std::vector<Dim> extents = std::move(nest.extents);
  nest.extents.clear();
  ScalarRewriter([&](ScalarNode node) {
    if (node.kind == ScalarKind::Extent) return nest.extent(extents[node.id].substitute(values));
    if (node.kind == ScalarKind::Load) node.view = substitute(node.view, values);
    // Folds expressions that became constant.
    if (node.kind == ScalarKind::Binary && node.dtype == DType::I64) {
      return binary_scalar(node.binary, node.dtype, node.args[0], node.args[1]);
    }
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }).apply(nest.body);
  for_each_statement(nest.body, [&](Statement& statement) {
    if (statement.kind == Statement::Kind::Loop)
      statement.extent = statement.extent.substitute(values);
    statement.view = substitute(statement.view, values);
  });
  list_extents(nest);
}

bool depends_on(const Dim& dim, const DimBindings& values) {
  SymbolRanges symbols;
  dim.collect_symbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(),
                     [&](const auto& symbol) { return values.contains(symbol.first); });
}

}  // namespace

NestSequence specialised(NestSequence sequence, const DimBindings& values) {
  for (NestSequence::Buffer& buffer : sequence.buffers)
    buffer.dims = substitute(buffer.dims, values);
  for (NestSequence::NestCall& part : sequence.parts) fix(part.nest, values);
  return sequence;
}

bool depends_on(const NestSequence& sequence, const DimBindings& values) {
  return std::any_of(sequence.parts.begin(), sequence.parts.end(),
                     [&](const NestSequence::NestCall& part) {
                       return std::any_of(part.nest.extents.begin(), part.nest.extents.end(),
                                          [&](const Dim& dim) { return depends_on(dim, values); });
                     });
}

}  // namespace tenon::nests
