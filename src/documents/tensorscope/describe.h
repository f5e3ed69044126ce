#pragma once

#include "base/page.h"
#include "documents/tensorscope/data_flow.h"

#include <cstdint>
#include <string_view>

namespace tenon::documents::tensorscope {

/// Describes the table for readers new to the format.
Page describe_table(const TensorScopeTable& table, const DataFlow& step, std::string_view source);

/// Bytes that a row reads and writes, by its shapes.
std::int64_t bytes_moved(const Row& row);

}  // namespace tenon::documents::tensorscope
