#pragma once

#include "nests/nest_pass.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::testing {

/// Elements of a buffer. Floats of all widths are doubles: nests that differ only in where they
/// round have equal results.
struct NestValues {
  DType dtype = DType::F32;
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
};

/// Result of a run of nests.
struct NestResults {
  /// By result of the sequence.
  std::vector<NestValues> results;
  /// A check failed, as for an index out of bounds or a zero divisor: the results are undefined.
  bool has_data_error = false;
};

/// Returns the number of scalar operations of a run, for a fixed binding of symbols.
double operation_count(const nests::NestSequence& sequence, const DimBindings& symbols);

/// Runs nests statement by statement, in serial order, with every loop to its end. Kinds of loops
/// have no effect. `operands` are by operand of the sequence, packed and derived constants are
/// computed from them. Elements that no statement writes are NaN, or the least integer. Throws
/// Error for an access outside of a buffer that the nest takes for granted.
NestResults interpret(const nests::NestWork& work, const std::vector<Tensor>& operands,
                      const DimBindings& symbols);

}  // namespace tenon::testing
