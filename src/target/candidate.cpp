#include "target/candidate.h"

#include "base/error.h"
#include "base/text.h"
#include "nests/index_map.h"

#include <map>
#include <optional>
#include <set>

namespace tenon::inline target {

using nests::LoopNest;
using nests::NestBuffer;
using nests::NestSequence;
using nests::Scalar;
using nests::ScalarNode;
using nests::StorageClass;

Verdict yes(double cost) { return {true, cost, ""}; }
Verdict no(std::string reason) { return {false, 0, std::move(reason)}; }

decltype(Candidate::make) made_by_passes(const KernelWork& work,
                                         std::function<std::vector<nests::NestPass>()> passes) {
  return [part = &work.part, &is_constant = work.is_constant, options = work.pass_options,
          name = work.name, passes = std::move(passes)](
             NestSequence& sequence, std::vector<nests::WinogradWeights>& derived) {
    static const nests::NestPassOptions kDefault;
    nests::NestWork run{{sequence.buffers, {*part}}, is_constant, derived, std::string(name)};
    nests::run_passes(passes(), run, options != nullptr ? *options : kDefault);
    sequence.buffers = std::move(run.sequence.buffers);
    derived = std::move(run.derived);
    std::vector<MadeKernel> made;
    for (NestSequence::NestCall& each : run.sequence.parts) {
      std::vector<nests::Packing> packings = std::move(each.packings);
      made.push_back({std::move(each), std::move(packings)});
    }
    return made;
  };
}

std::vector<bool> may_pack(const NestSequence::NestCall& part,
                           const std::vector<bool>& is_constant) {
  std::map<std::size_t, std::set<const ScalarNode*>> loads;
  for_each_load(part.nest.body, [&](const Scalar& load) { loads[load->id].insert(&load.node()); });
  std::vector<bool> list;
  std::size_t given = 0;
  for (std::size_t k = 0; k < part.nest.buffers.size(); ++k) {
    const bool is_given = part.nest.buffers[k].storage != StorageClass::Scratch;
    const std::size_t id = is_given ? part.buffers[given] : 0;
    list.push_back(is_given && id < is_constant.size() && is_constant[id] && loads[k].size() == 1);
    given += is_given;
  }
  return list;
}

std::size_t cheapest(const std::vector<Candidate>& candidates) {
  std::optional<std::size_t> best;
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    const Verdict& verdict = candidates[k].verdict;
    if (verdict.accepts && (!best || verdict.cost < candidates[*best].verdict.cost)) best = k;
  }
  TENON_ASSERT(best, "a candidate accepts");
  return *best;
}

std::string canonical_text(const KernelWork& work) {
  LoopNest nest = work.part.nest;
  nest.name.clear();
  for (std::size_t k = 0; k < nest.buffers.size(); ++k) nest.buffers[k].name = concat("x", k);
  std::string text = to_string(nest);
  const std::vector<bool> packs = may_pack(work.part, work.is_constant);
  for (std::size_t k = 0; k < packs.size(); ++k) {
    if (packs[k]) text += concat("constant ", nest.buffers[k].name, "\n");
  }
  for (const auto& [name, range] : symbols_of(nest)) {
    text += concat("symbol ", name, " in ", range.lo, "..", range.hi, "\n");
  }
  return text;
}

SymbolRanges symbols_of(const LoopNest& nest) {
  SymbolRanges symbols;
  for (const NestBuffer& buffer : nest.buffers) {
    for (const Dim& dim : buffer.dims) dim.collect_symbols(symbols);
  }
  for (const Dim& dim : nest.extents) dim.collect_symbols(symbols);
  return symbols;
}

}  // namespace tenon::inline target
