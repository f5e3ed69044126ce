#pragma once

#include "documents/findings.h"
#include "documents/megengine/import.h"
#include "documents/megengine/index.h"
#include "documents/megengine/memory.h"

namespace tenon::documents::megengine {

/// Inputs and findings of the parts of `check_profile`.
struct CheckContext {
  const MegEngineProfile& profile;
  const Index& index;
  const Inference& inference;
  const std::vector<VarFacts>& facts;
  Findings& findings;

  const std::vector<Operator>& operators() const { return profile.graph_exec.operators; }
  const std::vector<VarNode>& vars() const { return profile.graph_exec.vars; }
};

/// memory, computation, shapes, parameters
void check_footprints(const CheckContext& context);
/// comp_seq, times of update, walk, numbers, waiting
void check_order(const CheckContext& context);
void check_names(const CheckContext& context);
/// static_infer_tags
void check_inference(const CheckContext& context);
/// plans, chunks, addresses, overlap, peak
void check_memory(const CheckContext& context);
/// host and device
void check_times(const CheckContext& context);

}  // namespace tenon::documents::megengine
