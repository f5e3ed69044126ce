#include "ops/registry.h"

namespace tenon {

#define TENON_OP(id) extern const OpDef op_##id;
#include "ops/list.inc"
#undef TENON_OP

const OpTable& all_ops() {
  static const OpTable table({
#define TENON_OP(id) &op_##id,
#include "ops/list.inc"
#undef TENON_OP
  });
  return table;
}

}  // namespace tenon
