#include "nests/schedule/block_reduction.h"

#include "base/error.h"
#include "nests/schedule/loops.h"

namespace tenon::nests {

void block_reduction(LoopNest& nest, Block& block, const std::vector<std::size_t>& inside,
                     std::size_t lanes, std::size_t count) {
  const Statement* vector = find_loop(block, lanes);
  Block* around = inside.empty() ? nullptr : block_of(block, inside.front());
  TENON_ASSERT(vector != nullptr && around != nullptr && around->size() == 1,
               "the loops that are staged stand alone");
  NestBuffer sums;
  sums.name = concat("s", nest.buffers.size());
  sums.storage = StorageClass::Scratch;
  std::vector<Scalar> at;
  std::vector<Statement> headers;
  const Block* innermost = around;
  for (const std::size_t loop : inside) {
    TENON_ASSERT(innermost->size() == 1 && innermost->front().kind == Statement::Kind::Loop &&
                     innermost->front().id == loop && innermost->front().is_independent,
                 "the loops that are staged stand directly in each other and are independent");
    headers.push_back(header_of(innermost->front()));
    sums.dims.push_back(headers.back().extent);
    at.push_back(loop_scalar(loop));
    innermost = &innermost->front().body;
  }
  sums.dims.push_back(vector->extent);
  at.push_back(loop_scalar(lanes));
  TENON_ASSERT(innermost->size() > 2 && (*innermost)[0].kind == Statement::Kind::Define &&
                   (*innermost)[1].kind == Statement::Kind::Loop && !(*innermost)[1].is_independent,
               "what is staged is a local and the loops of its fold");
  const Statement start = (*innermost)[0];
  Statement blocks = (*innermost)[1];
  Statement* deepest = &blocks;
  for (std::size_t k = 1; k < count; ++k) {
    TENON_ASSERT(deepest->body.size() == 1 && deepest->body.front().kind == Statement::Kind::Loop,
                 "the sum has so many loops");
    deepest = &deepest->body.front();
  }
  const Block rest(innermost->begin() + 2, innermost->end());
  sums.dtype = nest.locals[start.id];
  const std::size_t buffer = nest.buffers.size();
  nest.buffers.push_back(sums);
  nest.extent(scratch_size(sums));

  const auto store = [&](Scalar value) {
    Statement statement;
    statement.kind = Statement::Kind::Store;
    statement.id = buffer;
    statement.indices = at;
    statement.view = sums.dims;
    statement.value = std::move(value);
    return statement;
  };
  const auto loaded = [&] {
    ScalarNode node;
    node.kind = ScalarKind::Load;
    node.dtype = sums.dtype;
    node.id = buffer;
    node.args = at;
    node.view = sums.dims;
    return define_statement(start.id, Scalar(std::make_shared<const ScalarNode>(std::move(node))));
  };
  const auto enclosed = [&](Block body) {
    for (std::size_t k = headers.size(); k-- > 0;) {
      Statement loop = headers[k];
      loop.body = std::move(body);
      body.clear();
      body.push_back(std::move(loop));
    }
    return std::move(body.front());
  };
  Block adding{loaded()};
  adding.insert(adding.end(), deepest->body.begin(), deepest->body.end());
  adding.push_back(store(local_scalar(start.id, sums.dtype)));
  Block ending{loaded()};
  ending.insert(ending.end(), rest.begin(), rest.end());
  Block made{enclosed({store(start.value)})};
  deepest->body = {enclosed(std::move(adding))};
  made.push_back(std::move(blocks));
  made.push_back(enclosed(std::move(ending)));
  *around = std::move(made);
}

}  // namespace tenon::nests
