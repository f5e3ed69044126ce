#include "documents/megengine/problem.h"

#include "documents/megengine/memory.h"

#include <algorithm>

namespace tenon::documents::megengine {

memory::Problem problem_of(const MegEngineProfile& profile, const Index& index,
                           std::string_view source) {
  const Inference inference = infer_profile(profile, index);
  const std::vector<VarFacts> facts = facts_of(profile, index, inference);
  const Lifetimes lifetimes = lifetimes_of(profile, index, facts);

  memory::Problem problem;
  problem.name = std::string(source);
  for (const std::size_t opr : index.sequence) {
    memory::Item item;
    item.name = profile.graph_exec.operators[opr].name;
    item.alternatives.push_back({});
    problem.items.push_back(std::move(item));
  }
  for (const VarStorage& storage : lifetimes.storages) {
    const auto bytes = static_cast<std::uint64_t>(storage.byte_count);
    if (!storage.is_dynamic) {
      problem.fixed_bytes += bytes;
      continue;
    }
    const auto value = static_cast<std::uint32_t>(problem.values.size());
    const VarNode& owner = profile.graph_exec.vars[storage.owner];
    problem.values.push_back({owner.name, bytes, false, true});
    problem.items[storage.begin].makes.push_back(value);
    if (storage.end > storage.begin) problem.items[storage.end].reads.push_back(value);
  }
  // The last reader of an operand may overwrite it.
  for (std::size_t step = 0; step < index.sequence.size(); ++step) {
    memory::Item& item = problem.items[step];
    if (profile.graph_exec.operators[index.sequence[step]].type != "Elemwise") continue;
    for (const std::uint32_t result : item.makes) {
      for (const std::uint32_t operand : item.reads) {
        if (problem.values[operand].bytes == problem.values[result].bytes) {
          item.may_share.emplace_back(result, operand);
        }
      }
    }
  }
  return problem;
}

}  // namespace tenon::documents::megengine
