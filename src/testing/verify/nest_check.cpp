#include "testing/verify/nest_check.h"

#include "base/error.h"
#include "base/text.h"
#include "target/candidate.h"
#include "testing/verify/nest_interpreter.h"
#include "testing/verify/trial_inputs.h"

#include <algorithm>
#include <cmath>

namespace tenon::testing {
namespace {

using nests::NestSequence;
using nests::NestWork;

// Relative to the largest magnitude of a result: the transforms of Winograd weights round to f32.
constexpr double kTolerance = 1e-4;

void collect(const Dims& dims, SymbolRanges& symbols) {
  for (const Dim& dim : dims) dim.collect_symbols(symbols);
}

// Small values that leave remainders in tiles and vectors.
DimBindings bindings_of(const NestWork& work, int trial) {
  SymbolRanges symbols;
  for (const NestSequence::Buffer& buffer : work.sequence.buffers) collect(buffer.dims, symbols);
  for (const NestSequence::NestCall& part : work.sequence.parts)
    symbols.merge(symbols_of(part.nest));
  DimBindings values;
  std::int64_t next = trial % 2 == 0 ? 3 : 1;
  for (const auto& [name, range] : symbols) {
    values.emplace(name, Dim(std::clamp(next, range.lo, range.hi)));
    next += 2;
  }
  return values;
}

std::vector<Tensor> operands_of(const NestWork& work, const DimBindings& symbols,
                                const TrialSettings& settings) {
  std::vector<Tensor> operands;
  for (const NestSequence::Buffer& buffer : work.sequence.buffers) {
    if (buffer.role != NestSequence::BufferRole::Operand) continue;
    if (operands.size() <= buffer.index) operands.resize(buffer.index + 1);
    TrialSettings own = settings;
    own.seed += buffer.index;
    operands[buffer.index] =
        trial_tensor(buffer.dtype, constants(substitute(buffer.dims, symbols)), own);
  }
  return operands;
}

std::string difference(const NestValues& actual, const NestValues& expected) {
  const auto at = [](std::size_t k, const auto& is, const auto& was) {
    return concat("element ", k, " is ", is, " instead of ", was);
  };
  if (actual.reals.size() != expected.reals.size() ||
      actual.integers.size() != expected.integers.size())
    return concat("another number of elements");
  double largest = 0;
  for (const double value : expected.reals) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (std::size_t k = 0; k < expected.reals.size(); ++k) {
    const double is = actual.reals[k], was = expected.reals[k];
    if (is == was || (std::isnan(is) && std::isnan(was))) continue;
    if (!(std::abs(is - was) <= kTolerance * largest)) return at(k, is, was);
  }
  for (std::size_t k = 0; k < expected.integers.size(); ++k) {
    if (actual.integers[k] != expected.integers[k])
      return at(k, actual.integers[k], expected.integers[k]);
  }
  return "";
}

}  // namespace

NestCheck compare_nests(const NestWork& before, const NestWork& after,
                        const NestCheckOptions& options) {
  NestCheck check;
  if (to_string(before) == to_string(after)) return check;
  for (int trial = 0; trial < options.trial_count; ++trial) {
    const DimBindings symbols = bindings_of(before, trial);
    if (operation_count(before.sequence, symbols) + operation_count(after.sequence, symbols) >
        options.most_operations)
      continue;
    // Ordinary integers are valid indices; quiet ones have both signs.
    const TrialKind kind = trial % 2 == 0 ? TrialKind::Ordinary : TrialKind::Quiet;
    const std::vector<Tensor> operands = operands_of(
        before, symbols, {kind, kind, options.seed + static_cast<std::uint64_t>(trial)});
    NestResults expected;
    try {
      expected = interpret(before, operands, symbols);
    } catch (const Error&) {
      continue;  // Inputs that the nests need not accept.
    }
    if (expected.has_data_error) continue;
    check.has_run = true;
    NestResults actual;
    try {
      actual = interpret(after, operands, symbols);
    } catch (const Error& error) {
      check.difference = error.what();
      return check;
    }
    for (std::size_t k = 0; k < expected.results.size(); ++k) {
      check.difference = difference(actual.results.at(k), expected.results[k]);
      if (check.difference.empty()) continue;
      check.difference = concat("result ", k, ": ", check.difference);
      return check;
    }
  }
  return check;
}

}  // namespace tenon::testing
