// Winograd weight transform G g Gᵀ as a nest, for weights that are not constant.
#include "base/error.h"
#include "codegen/cpu/winograd_nests.h"
#include "nests/affine.h"
#include "nests/index_map.h"

#include <array>

namespace tenon::codegen::cpu {
namespace {

// G g for one row or column of three weights.
std::vector<Scalar> transformed(const std::vector<Scalar>& g, int tile) {
  const Scalar ends = add(g[0], g[2]);
  if (tile == 2) return {g[0], scale(0.5, add(ends, g[1])), scale(0.5, subtract(ends, g[1])), g[2]};
  const Scalar wide = add(g[0], scale(4, g[2])), twice = scale(2, g[1]);
  return {scale(0.25, g[0]),
          scale(-1.0 / 6, add(ends, g[1])),
          scale(-1.0 / 6, subtract(ends, g[1])),
          scale(1.0 / 24, add(wide, twice)),
          scale(1.0 / 24, subtract(wide, twice)),
          g[2]};
}

}  // namespace

NestSequence::NestCall weight_nest(const NestSequence& sequence, const std::string& name,
                                   const WinogradWeights& weights, std::size_t made) {
  NestSequence::NestCall part;
  part.buffers = {weights.source, made};
  LoopNest& nest = part.nest;
  nest.name = concat(name, "_weights");
  const Dims flat{product(sequence.buffers[weights.source].dims)}, dims = weights.dims();
  nest.buffers = {{"w", DType::F32, flat, StorageClass::Operand},
                  {"g", DType::F32, dims, StorageClass::Result}};
  const std::size_t block = nest.new_loop("oo"), channel = nest.new_loop("c"),
                    lane = nest.new_loop("oi");
  constexpr unsigned kLanes = 16;

  Block body;
  const auto named = [&](const Scalar& value) {
    const std::size_t local = nest.new_local(DType::F32);
    body.push_back(define_statement(local, value));
    return local_scalar(local, DType::F32);
  };
  const auto weight_at = [&](std::int64_t row, std::int64_t column) {
    nests::Affine at;
    at.start = weights.base + row * weights.by_row + column * weights.by_column;
    at.steps = {{block, weights.columns * weights.by_output},
                {channel, weights.by_channel},
                {lane, weights.by_output}};
    ScalarNode node;
    node.kind = ScalarKind::Load;
    node.dtype = DType::F32;
    node.view = flat;
    node.args = {scalar_of(at)};
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  };
  std::vector<std::vector<Scalar>> half(static_cast<std::size_t>(weights.tile) +
                                        2);  // By row, then column.
  for (std::int64_t column = 0; column < 3; ++column) {
    std::vector<Scalar> values;
    for (std::int64_t row = 0; row < 3; ++row) values.push_back(named(weight_at(row, column)));
    const std::vector<Scalar> made_column = transformed(values, weights.tile);
    for (std::size_t row = 0; row < half.size(); ++row)
      half[row].push_back(named(made_column[row]));
  }
  std::int64_t kind = 0;
  for (const std::vector<Scalar>& row : half) {
    for (const Scalar& value : transformed(row, weights.tile)) {
      Statement store;
      store.kind = Statement::Kind::Store;
      store.id = 1;
      store.view = dims;
      store.indices = {integer_scalar(kind++), loop_scalar(block), loop_scalar(channel),
                       loop_scalar(lane)};
      store.value = value;
      body.push_back(std::move(store));
    }
  }
  const auto enclose = [&](std::size_t id, const Dim& extent, LoopKind kind_of_loop,
                           unsigned width) {
    Statement loop;
    loop.id = id;
    loop.extent = extent;
    loop.loop = kind_of_loop;
    loop.width = width;
    loop.is_independent = true;
    loop.body = std::move(body);
    body = {std::move(loop)};
  };
  enclose(lane, weights.columns, LoopKind::Vector, kLanes);
  enclose(channel, weights.channels, LoopKind::Parallel, 1);
  enclose(block, dims[1], LoopKind::Parallel, 1);
  // The innermost parallel loop follows the weights' memory order.
  nest.body = std::move(body);
  list_extents(nest);
  return part;
}

}  // namespace tenon::codegen::cpu
