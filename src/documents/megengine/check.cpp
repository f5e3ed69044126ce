#include "documents/megengine/check.h"

#include "documents/megengine/check_parts.h"

namespace tenon::documents::megengine {

Findings check_profile(const MegEngineProfile& profile, const Index& index) {
  Findings findings;
  const Inference inference = infer_profile(profile, index);
  const std::vector<VarFacts> facts = facts_of(profile, index, inference);
  const CheckContext context{profile, index, inference, facts, findings};
  check_footprints(context);
  check_order(context);
  check_names(context);
  check_inference(context);
  check_memory(context);
  check_times(context);
  return findings;
}

}  // namespace tenon::documents::megengine
