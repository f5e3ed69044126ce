#include "documents/megengine/memory.h"

#include "documents/megengine/vocabulary.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::documents::megengine {
namespace {

constexpr int kByteBits = 8;

// Returns the var whose memory this one views. Chains are short; the step limit ends cycles.
std::size_t source_of(const MegEngineProfile& profile, const Index& index, std::size_t var) {
  for (std::size_t left = 64; left > 0; --left) {
    const VarNode& node = profile.graph_exec.vars[var];
    const auto& next =
        node.mem_readonly_fwd_src ? node.mem_readonly_fwd_src : node.force_update_src;
    if (!next) break;
    var = index.vars.at(*next);
  }
  return var;
}

}  // namespace

std::int64_t VarFacts::byte_count() const {
  return saturating_sum(saturating_product(count_of(shape), element_bits), kByteBits - 1) /
         kByteBits;
}

std::vector<VarFacts> facts_of(const MegEngineProfile& profile, const Index& index,
                               const Inference& inference) {
  const auto& vars = profile.graph_exec.vars;
  std::vector<VarFacts> facts(vars.size());
  for (std::size_t k = 0; k < vars.size(); ++k) {
    VarFacts& fact = facts[k];
    if (is_workspace(vars[k])) {
      fact.shape = stated_shape(profile, index, k);
      fact.element_bits = kByteBits;
      continue;
    }
    std::optional<DType> dtype;
    if (const ValueId value = inference.value[k]) {
      const Type& type = inference.graph.value(value).type;
      if (type.is_tensor() && all_constant(type.tensor().dims)) {
        fact.shape = constants(type.tensor().dims);
        if (fact.shape.empty()) fact.shape = {1};  // a scalar has one axis here
        // Inputs have no operands to infer them from.
        fact.is_inferred = inference.graph.value(value).producer.is_valid();
        dtype = type.tensor().dtype;
      }
    }
    if (!fact.is_inferred && fact.shape.empty()) fact.shape = stated_shape(profile, index, k);
    if (dtype) fact.element_bits = info(*dtype).bits;
    // Bool takes a byte and shapes have 32 bits, regardless of Tenon's types.
    if (dtype == DType::Bool) fact.element_bits = kByteBits;
    if (dtype == DType::I64) fact.element_bits = 32;
    if (vars[k].mem_plan) {
      fact.element_bits = dtype_bits(vars[k].mem_plan->layout.dtype).value_or(fact.element_bits);
    }
  }
  return facts;
}

Lifetimes lifetimes_of(const MegEngineProfile& profile, const Index& index,
                       const std::vector<VarFacts>& facts) {
  const auto& vars = profile.graph_exec.vars;
  Lifetimes result;
  std::unordered_map<std::size_t, std::size_t> by_owner, by_chunk;
  const std::size_t last_step = index.sequence.empty() ? 0 : index.sequence.size() - 1;
  for (std::size_t step = 0; step < index.sequence.size(); ++step) {
    for (std::size_t var : index.outputs[index.sequence[step]]) {
      const std::size_t source = source_of(profile, index, var);
      const VarNode& node = vars[source];
      // A chunk is one storage for all vars in it.
      const auto [entry, is_new] =
          index.chunk[source] ? by_chunk.try_emplace(*index.chunk[source], result.storages.size())
                              : by_owner.try_emplace(source, result.storages.size());
      if (is_new) {
        VarStorage storage;
        storage.owner = source;
        storage.begin = step;
        const bool is_given =
            has_flag(node, "NO_SYS_MEM_ALLOC") || has_flag(node, "PERSISTENT_DEVICE_VALUE");
        storage.is_dynamic = !is_given && index.is_executed(index.producer[source]);
        result.storages.push_back(storage);
      }
      VarStorage& storage = result.storages[entry->second];
      const std::int64_t offset = index.chunk[source] ? node.mem_plan->offset_byte : 0;
      storage.byte_count =
          std::max(storage.byte_count, saturating_sum(offset, facts[source].byte_count()));
      storage.end = std::max(storage.end, step);
      for (std::size_t reader : index.readers[var]) {
        if (const auto& read = index.step[reader]) storage.end = std::max(storage.end, *read);
      }
      if (has_flag(node, "NO_MEM_RECLAIM") || has_flag(node, "PERSISTENT_DEVICE_VALUE"))
        storage.end = last_step;
    }
  }
  return result;
}

DynamicPeak live_peak(const Lifetimes& lifetimes, std::size_t step_count,
                      const std::vector<std::int64_t>& byte_counts) {
  std::vector<std::int64_t> change(step_count + 1);
  for (std::size_t k = 0; k < lifetimes.storages.size(); ++k) {
    const VarStorage& storage = lifetimes.storages[k];
    if (!storage.is_dynamic) continue;
    // Bounds sums of oversized values against overflow.
    const std::int64_t bytes = std::min(byte_counts[k], std::int64_t{1} << 56);
    change[storage.begin] = saturating_sum(change[storage.begin], bytes);
    change[storage.end + 1] = saturating_sum(change[storage.end + 1], -bytes);
  }
  DynamicPeak peak;
  std::int64_t alive = 0;
  for (std::size_t step = 0; step < step_count; ++step) {
    alive = saturating_sum(alive, change[step]);
    if (alive > peak.byte_count) peak = {alive, step};
  }
  return peak;
}

std::vector<std::int64_t> bytes_by_shape(const Lifetimes& lifetimes) {
  std::vector<std::int64_t> counts;
  for (const VarStorage& storage : lifetimes.storages) counts.push_back(storage.byte_count);
  return counts;
}

}  // namespace tenon::documents::megengine
