#pragma once

#include "app/bench.h"
#include "models/model_source.h"
#include "models/summary.h"

#include <optional>
#include <vector>

namespace tenon::app {

/// Returns the work of each node of a dynamic model for these inputs. The program only has symbolic
/// amounts.
std::optional<std::vector<models::NodeWork>> work_of(const models::ModelSource& source,
                                                     const std::vector<Datum>& inputs);

/// Returns steps sorted by time, the longest first, without steps for other extents. For a step of
/// unknown work that is all of its node, `work` provides it.
std::vector<SlowStep> ranked_steps(CompiledModel& model, const std::vector<models::NodeWork>& work);

/// Returns the reason of each kernel choice among several candidates.
std::map<std::pair<std::string, std::string>, std::string> reasons_of(
    const driver::CompileRecord& record);

}  // namespace tenon::app
