#include "ops/definition/registry.h"

namespace tenon::inline ops {

#define TENON_OP(id)            \
  namespace id##_op {           \
    extern const OpDef op_##id; \
  }
#include "ops/list.inc"
#undef TENON_OP

const OpTable& all_ops() {
  static const OpTable table({
#define TENON_OP(id) &id##_op::op_##id,
#include "ops/list.inc"
#undef TENON_OP
  });
  return table;
}

}  // namespace tenon::inline ops
