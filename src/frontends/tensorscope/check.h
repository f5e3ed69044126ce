#pragma once

#include "frontends/findings.h"
#include "frontends/tensorscope/data_flow.h"

#include <optional>

namespace tenon::tensorscope {

/// Computes again what the table claims: every shape from its producer and by Tenon's inference,
/// bytes of copies, devices, numbers of fetches, names of transposes and streams.
Findings check_table(const Table& table, const DataFlow& step);

/// What Tenon's operators infer for the outputs of a row from its own inputs; nothing where the
/// operator is not known. Throws Error where the inputs do not fit it.
std::optional<std::vector<TensorShape>> inferred_outputs(const Table& table, const DataFlow& step,
                                                         std::size_t row);

}  // namespace tenon::tensorscope
