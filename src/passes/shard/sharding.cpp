#include "passes/shard/sharding.h"

#include "base/error.h"

namespace tenon::passes {

std::string to_string(const Sharding& sharding) {
  if (sharding.is_whole()) return "whole";
  return sharding.is_partial() ? "partial sums" : concat("split along axis ", sharding.axis);
}

bool can_hold(const TensorType& type, const Sharding& sharding, std::int64_t ranks) {
  if (sharding.is_partial()) return is_float(type.dtype);
  if (sharding.is_whole()) return true;
  if (sharding.axis >= type.rank() || !type.dims[sharding.axis].is_constant()) return false;
  const std::int64_t extent = type.dims[sharding.axis].constant();
  return extent > 0 && extent % ranks == 0;
}

TensorType part_of(TensorType type, const Sharding& sharding, std::int64_t ranks) {
  TENON_ASSERT(can_hold(type, sharding, ranks), "a value comes out even over the ranks");
  if (sharding.is_split())
    type.dims[sharding.axis] = Dim(type.dims[sharding.axis].constant() / ranks);
  return type;
}

}  // namespace tenon::passes
