#pragma once

#include "documents/megengine/index.h"
#include "ir/graph.h"
#include "program/run_profile.h"

#include <string>
#include <string_view>

namespace tenon::documents::megengine {

/// Returns the last run as a document; `graph` is the compiled graph after the passes.
std::string print_run(const Profile& profile, const Graph& graph);

/// Returns the operators in execution order, with the document's own counts and times.
Profile run_profile(const MegEngineProfile& document, const Index& index, std::string_view source);

}  // namespace tenon::documents::megengine
