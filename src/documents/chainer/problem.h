#pragma once

#include "documents/chainer/tables.h"
#include "documents/recorded_run.h"

namespace tenon::documents::chainer {

/// Builds the memory problem of a training step: functions and their backwards are items,
/// intermediates and their gradients are values. Gradients of one tensor accumulate in place; those
/// of inputs are not computed. Parameters, their gradients and inputs are fixed. Costs follow from
/// the shapes. A micro-batch is one of equal parts of the batch, with gradient accumulation; there
/// are none if an operator mixes samples.
RecordedRun recorded_run(const Tables& tables, const std::string& source, const RunReading& reading,
                         const memory::DeviceSpec& device);

}  // namespace tenon::documents::chainer
