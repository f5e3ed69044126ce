#include "base/text.h"
#include "documents/megengine/check_parts.h"
#include "documents/megengine/vocabulary.h"

#include <algorithm>
#include <map>

namespace tenon::documents::megengine {
namespace {

constexpr std::int64_t kDeviceAlignment = 512;  // of GPU addresses

bool is_gpu(const VarNode& var) { return var.comp_node.find("gpu") != std::string::npos; }
// "gpu0:0" -> "gpu0": streams of a device share its memory.
std::string device_of(const VarNode& var) {
  return var.comp_node.substr(0, var.comp_node.find(':'));
}

// Returns the bytes from the first element to the end of the last.
std::int64_t span_of(const TensorLayout& layout, std::int64_t bits) {
  if (std::find(layout.shape.begin(), layout.shape.end(), 0) != layout.shape.end()) return 0;
  std::int64_t last = 0;
  for (std::size_t k = 0; k < layout.shape.size(); ++k) {
    last = saturating_sum(
        last, saturating_product(layout.shape[k] - 1, std::max<std::int64_t>(layout.stride[k], 0)));
  }
  return saturating_sum(saturating_product(saturating_sum(last, 1), bits), 7) / 8;
}

class MemoryCheck {
 public:
  explicit MemoryCheck(const CheckContext& context)
      : context_(context),
        lifetimes_(lifetimes_of(context.profile, context.index, context.facts)) {}

  void run() {
    for (std::size_t var = 0; var < context_.vars().size(); ++var) {
      check_plan(var);
      check_addresses(var);
      check_forward(var);
    }
    check_chunks();
    check_overlap();
    check_peak();
  }

 private:
  template <class T, class U>
  void compare(std::string_view kind, const VarNode& node, std::string_view member, const T& says,
               const U& should_be) {
    context_.findings.compare(
        kind, [&] { return concat(var_path(node), ".", member); }, says, should_be);
  }

  std::int64_t expected_span(std::size_t var) const {
    const VarNode& node = context_.vars()[var];
    const bool is_strided = node.mem_plan && node.mem_plan->layout.stride !=
                                                 contiguous_strides(node.mem_plan->layout.shape);
    return is_strided ? span_of(node.mem_plan->layout, context_.facts[var].element_bits)
                      : context_.facts[var].byte_count();
  }

  void check_plan(std::size_t var) {
    const VarNode& node = context_.vars()[var];
    if (!node.mem_plan) return;
    const TensorLayout& layout = node.mem_plan->layout;
    const MemChunk& chunk = context_.profile.graph_exec.mem_chunks[*context_.index.chunk[var]];
    if (!context_.facts[var].shape.empty()) {
      compare("mem_plan: shape", node, "mem_plan.layout.shape", to_text(layout.shape),
              to_text(context_.facts[var].shape));
    }
    compare("mem_plan: element type", node, "mem_plan.layout.dtype", layout.dtype,
            dtype_bits(layout.dtype) ? layout.dtype : "a known element type");
    const Extents strides = contiguous_strides(layout.shape);
    if (!node.mem_readonly_fwd_src || layout.stride == strides) {
      compare("mem_plan: strides", node, "mem_plan.layout.stride", to_text(layout.stride),
              to_text(strides));
    } else if (const auto viewed = view_strides(var)) {
      compare("mem_plan: strides", node, "mem_plan.layout.stride", to_text(layout.stride),
              to_text(*viewed));
    }
    const std::int64_t end = saturating_sum(node.mem_plan->offset_byte, expected_span(var));
    context_.findings.require(
        end <= chunk.size, "mem_plan: inside its chunk",
        [&] { return var_path(node) + ".mem_plan.offset_byte"; },
        concat("offset ", node.mem_plan->offset_byte, " and ", expected_span(var), " bytes"),
        concat("at most ", chunk.size, " bytes of ", chunk.key));
    if (chunk.owner_var == node.id) {
      compare("mem_plan: the owner's chunk", node, "mem_plan.mem_chunk_id", chunk.key,
              concat("chk", node.id));
      compare("mem_plan: the owner lies first", node, "mem_plan.offset_byte",
              node.mem_plan->offset_byte, 0);
    }
  }

  // Returns the strides of a permuted view; nullopt if the type does not determine them.
  std::optional<Extents> view_strides(std::size_t var) const {
    const VarNode& node = context_.vars()[var];
    const VarNode& source = context_.vars()[context_.index.vars.at(*node.mem_readonly_fwd_src)];
    const std::size_t opr = context_.index.producer[var];
    const OprFootprint* footprint = context_.index.footprint[opr];
    if (!source.mem_plan || footprint == nullptr || context_.operators()[opr].type != "Dimshuffle")
      return std::nullopt;
    const frontends::JsonValue* pattern_json = Param(&footprint->param).find("pattern");
    const auto* pattern =
        pattern_json ? std::get_if<frontends::JsonValue::Array>(&pattern_json->value) : nullptr;
    if (pattern == nullptr) return std::nullopt;
    Extents strides;
    for (const frontends::JsonValue& entry : *pattern) {
      const auto* axis = std::get_if<std::int64_t>(&entry.value);
      const Extents& from = source.mem_plan->layout.stride;
      if (axis == nullptr || *axis < 0 || *axis >= static_cast<std::int64_t>(from.size()))
        return std::nullopt;
      strides.push_back(from[static_cast<std::size_t>(*axis)]);
    }
    return strides;
  }

  void check_addresses(std::size_t var) {
    const VarNode& node = context_.vars()[var];
    const std::int64_t previous = node.prev_dev_ptr.value_or(0);
    compare("addresses: an end where there was one", node, "prev_dev_ptr_end",
            node.prev_dev_ptr_end ? "one" : "none", previous != 0 ? "one" : "none");
    if (previous != 0 && node.prev_dev_ptr_end &&
        (!context_.facts[var].shape.empty() || node.mem_plan)) {
      compare("addresses: end is start and span", node, "prev_dev_ptr_end", *node.prev_dev_ptr_end,
              saturating_sum(previous, expected_span(var)));
    }
    if (node.dev_ptr) {
      compare("addresses: the last one is the present one", node, "prev_dev_ptr", previous,
              *node.dev_ptr);
      if (node.mem_plan) {
        const MemChunk& chunk = context_.profile.graph_exec.mem_chunks[*context_.index.chunk[var]];
        const std::int64_t base = chunk.dev_ptr.value_or(0);
        compare("addresses: in the chunk", node, "dev_ptr", *node.dev_ptr,
                saturating_sum(base, node.mem_plan->offset_byte));
      }
    }
    // Allocations are aligned; views inside one need not be.
    if (previous != 0 && is_gpu(node) && !node.mem_readonly_fwd_src &&
        (!node.mem_plan || node.mem_plan->offset_byte == 0)) {
      compare("addresses: aligned to 512 bytes", node, "prev_dev_ptr", previous,
              previous / kDeviceAlignment * kDeviceAlignment);
    }
    // Executed, nonempty values must have memory if any value has.
    const std::size_t opr = context_.index.producer[var];
    const bool ran =
        context_.index.is_executed(opr) && (context_.index.host[opr] || context_.index.device[opr]);
    if (!ran || has_flag(node, "NO_SYS_MEM_ALLOC") || has_flag(node, "NO_ALLOC_IF_UNUSED")) return;
    if (context_.facts[var].byte_count() == 0) {
      compare("addresses: of all that is not empty", node, "prev_dev_ptr",
              previous == 0 ? "none" : "one", "none");
    } else {
      compare("addresses: of all that is not empty", node, "prev_dev_ptr",
              previous == 0 ? "none" : "one", "one");
    }
  }

  void check_forward(std::size_t var) {
    const VarNode& node = context_.vars()[var];
    if (!node.mem_readonly_fwd_src) return;
    const std::size_t source = context_.index.vars.at(*node.mem_readonly_fwd_src);
    const VarNode& seen = context_.vars()[source];
    const auto& inputs = context_.index.inputs[context_.index.producer[var]];
    compare("forwards: of an input", node, "mem_readonly_fwd_src", *node.mem_readonly_fwd_src,
            std::find(inputs.begin(), inputs.end(), source) != inputs.end() ? seen.id
            : inputs.empty()                                                ? -1
                             : context_.vars()[inputs.front()].id);
    const auto span = stated_span(node), source_span = stated_span(seen);
    if (!span || !source_span) return;
    const bool is_inside = *node.prev_dev_ptr >= *seen.prev_dev_ptr &&
                           *node.prev_dev_ptr_end <= *seen.prev_dev_ptr_end;
    context_.findings.require(
        is_inside, "forwards: inside what they show",
        [&] { return var_path(node) + ".prev_dev_ptr"; },
        concat(*node.prev_dev_ptr, " to ", *node.prev_dev_ptr_end),
        concat("inside ", *seen.prev_dev_ptr, " to ", *seen.prev_dev_ptr_end));
  }

  void check_chunks() {
    const auto& chunks = context_.profile.graph_exec.mem_chunks;
    std::vector<std::int64_t> used(chunks.size());
    for (std::size_t var = 0; var < context_.vars().size(); ++var) {
      if (!context_.index.chunk[var]) continue;
      std::int64_t& end = used[*context_.index.chunk[var]];
      end = std::max(
          end, saturating_sum(context_.vars()[var].mem_plan->offset_byte, expected_span(var)));
    }
    std::int64_t constants = 0, stated = 0;
    for (std::size_t k = 0; k < chunks.size(); ++k) {
      const MemChunk& chunk = chunks[k];
      const auto place = [&](std::string_view member) {
        return
            [&chunk, member] { return concat("$.graph_exec.mem_chunk.", chunk.key, ".", member); };
      };
      context_.findings.compare("mem_chunk: size", place("size"), chunk.size, used[k]);
      context_.findings.compare("mem_chunk: named for its owner", place("id"), chunk.id,
                                concat("chk", chunk.owner_var));
      const std::size_t owner = context_.index.vars.at(chunk.owner_var);
      const bool is_there = context_.index.chunk[owner] == std::optional<std::size_t>(k);
      context_.findings.compare(
          "mem_chunk: the owner lies in it", place("owner_var"),
          is_there ? chunk.key : concat(chunk.key, " owned by ", chunk.owner_var), chunk.key);
      if (chunk.dev_ptr && is_gpu(context_.vars()[owner])) {
        context_.findings.compare("mem_chunk: aligned to 512 bytes", place("dev_ptr"),
                                  *chunk.dev_ptr,
                                  *chunk.dev_ptr / kDeviceAlignment * kDeviceAlignment);
      }
      if (!has_flag(context_.vars()[owner], "PERSISTENT_DEVICE_VALUE")) continue;
      constants = saturating_sum(constants, context_.facts[owner].byte_count());
      stated = saturating_sum(stated, chunk.size);
    }
    if (stated > 0 || constants > 0) {
      context_.findings.compare(concat("constants take ", with_commas(constants), " bytes"),
                                "$.graph_exec.mem_chunk", stated, constants);
    }
  }

  // Requires that memory in use at the same time is disjoint, except for views.
  void check_overlap() {
    struct Block {
      std::string space;
      std::int64_t begin, end;
      std::size_t first, last, owner;
    };
    std::vector<Block> blocks;
    for (const VarStorage& storage : lifetimes_.storages) {
      const VarNode& owner = context_.vars()[storage.owner];
      if (const auto span = stated_span(owner); span && *span > 0) {
        blocks.push_back({device_of(owner), *owner.prev_dev_ptr, *owner.prev_dev_ptr_end,
                          storage.begin, storage.end, storage.owner});
      }
    }
    for (std::size_t var = 0; var < context_.vars().size(); ++var) add_planned(var, blocks);
    std::vector<std::size_t> starts(blocks.size()), ends(blocks.size());
    for (std::size_t k = 0; k < blocks.size(); ++k) starts[k] = ends[k] = k;
    std::stable_sort(starts.begin(), starts.end(),
                     [&](auto a, auto b) { return blocks[a].first < blocks[b].first; });
    std::stable_sort(ends.begin(), ends.end(),
                     [&](auto a, auto b) { return blocks[a].last < blocks[b].last; });
    std::map<std::tuple<std::string, std::int64_t, std::size_t>, std::size_t> alive;
    std::size_t ended = 0;
    for (std::size_t k : starts) {
      const Block& block = blocks[k];
      for (; ended < ends.size() && blocks[ends[ended]].last < block.first; ++ended) {
        const Block& over = blocks[ends[ended]];
        alive.erase({over.space, over.begin, ends[ended]});
      }
      const auto here = alive.emplace(std::tuple(block.space, block.begin, k), k).first;
      const Block* other = nullptr;
      if (here != alive.begin()) {
        const Block& before = blocks[std::prev(here)->second];
        if (before.space == block.space && before.end > block.begin) other = &before;
      }
      if (const auto next = std::next(here); next != alive.end()) {
        const Block& after = blocks[next->second];
        if (after.space == block.space && after.begin < block.end) other = &after;
      }
      // According to the plan, a result may overwrite an operand at its last use.
      const auto is_planned = [&](const Block& each) {
        return context_.vars()[each.owner].mem_plan.has_value();
      };
      const bool takes_over =
          other != nullptr &&
          (block.space.starts_with("chk") || (is_planned(block) && is_planned(*other))) &&
          (other->last == block.first || block.last == other->first);
      if (other == nullptr || takes_over) {
        context_.findings.hold("memory in use lies apart");
      } else {
        const VarNode& node = context_.vars()[block.owner];
        context_.findings.miss(
            "memory in use lies apart", [&] { return var_path(node); },
            concat(block.begin, " to ", block.end, " in ", block.space),
            concat("apart from var ", context_.vars()[other->owner].id, " at ", other->begin,
                   " to ", other->end));
      }
    }
  }

  // Vars in one chunk are identified by their offsets.
  template <class Blocks>
  void add_planned(std::size_t var, Blocks& blocks) const {
    const VarNode& node = context_.vars()[var];
    const std::size_t opr = context_.index.producer[var];
    if (!node.mem_plan || node.mem_readonly_fwd_src || node.force_update_src ||
        !context_.index.is_executed(opr))
      return;
    if (expected_span(var) == 0) return;
    std::size_t last = *context_.index.step[opr];
    for (std::size_t reader : context_.index.readers[var])
      last = std::max(last, context_.index.step[reader].value_or(0));
    blocks.push_back({node.mem_plan->mem_chunk_id, node.mem_plan->offset_byte,
                      saturating_sum(node.mem_plan->offset_byte, expected_span(var)),
                      *context_.index.step[opr], last, var});
  }

  // Compares peak memory by shapes with the peak by addresses.
  void check_peak() {
    if (context_.index.sequence.empty()) return;
    const DynamicPeak peak =
        live_peak(lifetimes_, context_.index.sequence.size(), bytes_by_shape(lifetimes_));
    if (peak.byte_count == 0) return;
    std::vector<std::int64_t> stated;
    for (const VarStorage& storage : lifetimes_.storages) {
      const VarNode& owner = context_.vars()[storage.owner];
      const auto& chunk = context_.index.chunk[storage.owner];
      const auto span = stated_span(owner);
      if (!chunk && !span && storage.is_dynamic && storage.byte_count > 0)
        return;  // incomplete data
      stated.push_back(chunk ? context_.profile.graph_exec.mem_chunks[*chunk].size
                             : span.value_or(0));
    }
    const Operator& opr = context_.operators()[context_.index.sequence[peak.step]];
    context_.findings.compare(
        concat("live peak of ", with_commas(peak.byte_count), " bytes, at operator ", opr.id),
        "$.graph_exec.var",
        live_peak(lifetimes_, context_.index.sequence.size(), stated).byte_count, peak.byte_count);
  }

  const CheckContext& context_;
  Lifetimes lifetimes_;
};

}  // namespace

void check_memory(const CheckContext& context) { MemoryCheck(context).run(); }

}  // namespace tenon::documents::megengine
