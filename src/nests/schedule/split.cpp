#include "nests/schedule/split.h"

#include "base/error.h"
#include "nests/schedule/loops.h"

namespace tenon::nests {

SplitLoop split(LoopNest& nest, Block& block, std::size_t loop, std::int64_t size,
                std::string_view mark) {
  Statement* found = find_loop(block, loop);
  TENON_ASSERT(found != nullptr, "the loop that is split is there");
  TENON_ASSERT(!found->limit.is_defined() && size > 0, "a loop that is split has no limit");
  const std::string name = nest.loop_names[loop];  // new_loop may reallocate the names.
  const SplitLoop made{nest.new_loop(concat(name, mark)), nest.new_loop(concat(name, "i"))};
  const Dim count = found->extent;
  const Scalar first = times(loop_scalar(made.outer), integer_scalar(size));
  Statement inner = header_of(*found);
  inner.id = made.inner;
  inner.extent = size;
  if (!(mod(count, size) == Dim(0))) {
    inner.limit =
        binary_scalar(BinaryOp::Minimum, DType::I64, integer_scalar(size),
                      binary_scalar(BinaryOp::Subtract, DType::I64, nest.extent(count), first));
  }
  inner.body = std::move(found->body);
  substitute_loop(inner.body, loop, plus(first, loop_scalar(made.inner)));
  found->id = made.outer;
  found->extent = ceil_div(count, size);
  nest.extent(found->extent);
  found->body = {std::move(inner)};
  return made;
}

std::size_t split_at(LoopNest& nest, Block& block, std::size_t loop, std::int64_t position) {
  Block* around = block_of(block, loop);
  TENON_ASSERT(around != nullptr, "the loop that is split is there");
  const auto at = find_loop(block, loop) - around->data();
  Statement& first = (*around)[static_cast<std::size_t>(at)];
  TENON_ASSERT(!first.limit.is_defined() && first.extent.is_constant(),
               "a loop that is split in two has a number of positions");
  TENON_ASSERT(position > 0 && position < first.extent.constant(),
               "both parts of a loop have positions");
  Statement second = first;
  second.id = nest.new_loop(nest.loop_names[loop]);
  second.extent = first.extent.constant() - position;
  substitute_loop(second.body, loop, plus(loop_scalar(second.id), integer_scalar(position)));
  first.extent = position;
  const std::size_t made = second.id;
  around->insert(around->begin() + at + 1, std::move(second));
  return made;
}

}  // namespace tenon::nests
