#pragma once

#include "ir/op_def.h"

namespace tenon::inline ops {

/// Every operator of `ops/list.inc`.
const OpTable& all_ops();
inline const OpDef& find_op(std::string_view name) { return all_ops().get(name); }

}  // namespace tenon::inline ops
