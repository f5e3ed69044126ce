#include "nests/schedule/cache_read.h"

#include "base/error.h"
#include "nests/operand_copy.h"
#include "nests/schedule/reorder.h"
#include "nests/schedule/split.h"

namespace tenon::nests {
namespace {

using Part = NestSequence::NestCall;

Scalar load_of(ScalarNode node, std::size_t buffer, Dims view, std::vector<Scalar> at) {
  node.id = buffer;
  node.view = std::move(view);
  node.args = std::move(at);
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

}  // namespace

Part cache_read(NestSequence& sequence, Part& part, const Contraction& contraction,
                const Scalar& load, const std::vector<const Statement*>& loops, const Dims& dims,
                std::int64_t block) {
  TENON_ASSERT(load->bounds == Bounds::Inside, "what is staged is read inside its buffer");
  const NestBuffer from = part.nest.buffers[load->id];
  const std::size_t source = buffer_of(part, load->id), made = sequence.buffers.size();
  sequence.buffers.push_back({NestSequence::BufferRole::Temporary, 0, DType::F32, dims});

  Part copy;
  copy.buffers = {source, made};
  copy.nest.name = "turn";
  copy.nest.loop_names = part.nest.loop_names;
  copy.nest.extents = part.nest.extents;
  copy.nest.buffers = {{"x", from.dtype, from.dims, StorageClass::Operand},
                       {"t", DType::F32, dims, StorageClass::Result}};
  std::vector<Scalar> at;
  for (const Statement* loop : loops) at.push_back(loop_scalar(loop->id));
  Statement store;
  store.kind = Statement::Kind::Store;
  store.id = 1;
  store.view = dims;
  store.indices = at;
  store.value = load_of(load.node(), 0, load->view, load->args);
  Block body{std::move(store)};
  for (std::size_t k = loops.size(); k-- > 0;) {
    Statement loop;
    loop.id = loops[k]->id;
    loop.extent = loops[k]->extent;
    loop.is_independent = true;
    loop.body = std::move(body);
    body = {std::move(loop)};
  }
  copy.nest.body = std::move(body);
  const Dim& last = loops.back()->extent;
  if (block > 0 && last.is_constant() && last.constant() > block && last.constant() % block == 0) {
    const SplitLoop blocks = split(copy.nest, copy.nest.body, loops.back()->id, block);
    std::vector<std::size_t> order{blocks.outer};
    for (std::size_t k = 0; k + 1 < loops.size(); ++k) order.push_back(loops[k]->id);
    order.push_back(blocks.inner);
    reorder(copy.nest.body, order);
  }

  read_copy(part, contraction, load, {concat("t", made), DType::F32, dims, StorageClass::Operand},
            made, load_of(load.node(), 0, dims, std::move(at)).node());
  return copy;
}

Part cache_read_whole(NestSequence& sequence, Part& part, const Contraction& contraction,
                      const Scalar& load) {
  const NestBuffer from = part.nest.buffers[load->id];
  const std::size_t source = buffer_of(part, load->id), made = sequence.buffers.size();
  sequence.buffers.push_back({NestSequence::BufferRole::Temporary, 0, DType::F32, from.dims});
  const Dims flat{product(from.dims)};
  Part copy;
  copy.buffers = {source, made};
  copy.nest.name = "widen";
  copy.nest.buffers = {{"x", from.dtype, flat, StorageClass::Operand},
                       {"w", DType::F32, flat, StorageClass::Result}};
  const Scalar at = loop_scalar(copy.nest.new_loop("i"));
  copy.nest.extent(flat[0]);
  Statement store;
  store.kind = Statement::Kind::Store;
  store.id = 1;
  store.view = flat;
  store.indices = {at};
  store.value = load_of(load.node(), 0, flat, {at});
  Statement loop;
  loop.extent = flat[0];
  loop.is_independent = true;
  loop.body = {std::move(store)};
  copy.nest.body = {std::move(loop)};
  read_copy(part, contraction, load,
            {concat("w", made), DType::F32, from.dims, StorageClass::Operand}, made, load.node());
  return copy;
}

}  // namespace tenon::nests
