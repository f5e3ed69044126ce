#pragma once

#include "documents/findings.h"
#include "documents/tensorscope/data_flow.h"

namespace tenon::documents::tensorscope {

/// Recomputes the claims of the table: every shape from its producer and by Tenon's inference,
/// bytes of copies, devices, numbers of fetches, names of transposes and streams.
Findings check_table(const TensorScopeTable& table, const DataFlow& step);

}  // namespace tenon::documents::tensorscope
