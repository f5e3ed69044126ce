#include "documents/megengine/index.h"
#include "documents/megengine/write.h"
#include "documents/megengine/writer.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tenon::documents::megengine {
namespace {

constexpr std::int64_t kPage = 4096, kFirstAddress = 1 << 20;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

class RunWriter {
 public:
  RunWriter(const Graph& graph, const RunFacts& facts)
      : graph_(graph), facts_(facts), writer_(graph, true) {}

  MegEngineProfile run() {
    profile_ = writer_.run();
    GraphExec& exec = profile_.graph_exec;
    for (std::size_t k = 0; k < exec.operators.size(); ++k) {
      for (const ItemId var : exec.operators[k].output) producer_[var] = k;
    }
    begins_.resize(exec.operators.size());
    for (const ValueId input : graph_.inputs())
      put_times(writer_.find_var(input), facts_.inputs, graph_.value(input).name);
    for (const NodeId id : graph_.nodes_in_order()) {
      const Node& node = graph_.node(id);
      if (node.results.empty() || !node.results[0] ||
          graph_.constant_of(node.results[0]) != nullptr)
        continue;
      put_times(writer_.find_var(node.results[0]), facts_.nodes,
                graph_.value(node.results[0]).name);
    }
    put_copies();
    put_order();
    put_addresses();
    return std::move(profile_);
  }

 private:
  std::uint32_t order(std::initializer_list<const char*> names) {
    return profile_.orders.intern(std::vector<std::string>(names.begin(), names.end()));
  }

  void put_times(const std::optional<ItemId>& var,
                 const std::map<std::string, RunFacts::Ran>& table, const std::string& name) {
    const auto found = table.find(name);
    if (!var || found == table.end()) return;
    put(producer_.at(*var), found->second);
  }

  void put(std::size_t opr, const RunFacts::Ran& ran) {
    const ItemId id = profile_.graph_exec.operators[opr].id;
    const auto add = [&](std::vector<Measured>& list, const std::vector<RunFacts::Times>& times) {
      if (times.empty()) return;
      Measured measured;
      measured.opr = id;
      for (const RunFacts::Times& time : times) {
        Times put_down;
        put_down.order = order({"end", "kern", "start"});
        put_down.start = time.start;
        put_down.kern = time.kern;
        put_down.end = time.end;
        measured.at.emplace_back(time.place, std::move(put_down));
      }
      list.push_back(std::move(measured));
    };
    add(profile_.profiler.host, ran.host);
    add(profile_.profiler.device, ran.device);
    begins_[opr] = ran.begin;
  }

  // Copies to the caller follow all other operators, one per output.
  void put_copies() {
    const auto& operators = profile_.graph_exec.operators;
    const std::size_t count = graph_.outputs().size();
    for (std::size_t k = 0; k < count && count <= operators.size(); ++k) {
      const auto found = facts_.outputs.find(graph_.value(graph_.outputs()[k]).name);
      if (found != facts_.outputs.end()) put(copy_of(k, count), found->second);
    }
  }
  std::size_t copy_of(std::size_t output, std::size_t count) const {
    std::vector<std::size_t> copies;
    const auto& operators = profile_.graph_exec.operators;
    for (std::size_t k = 0; k < operators.size(); ++k) {
      if (operators[k].type == "Copy") copies.push_back(k);
    }
    return copies[copies.size() - count + output];
  }

  // Writes the execution order as priorities, which MegEngine sorts by. Operators without a
  // measurement are not executed.
  void put_order() {
    GraphExec& exec = profile_.graph_exec;
    std::vector<std::size_t> ran;
    std::unordered_set<ItemId> idle;
    for (std::size_t k = 0; k < exec.operators.size(); ++k) {
      Operator& opr = exec.operators[k];
      if (begins_[k]) {
        ran.push_back(k);
        continue;
      }
      opr.waiting_spec.reset();
      opr.extra = Extra();
      opr.extra.order = order({});
      idle.insert(opr.id);
    }
    std::erase_if(profile_.profiler.opr_footprint,
                  [&](const OprFootprint& footprint) { return idle.contains(footprint.opr); });
    std::stable_sort(ran.begin(), ran.end(),
                     [&](std::size_t a, std::size_t b) { return *begins_[a] < *begins_[b]; });
    exec.comp_seq.clear();
    for (std::size_t k = 0; k < ran.size(); ++k) {
      exec.operators[ran[k]].extra.priority = static_cast<std::int64_t>(k);
      exec.comp_seq.push_back(exec.operators[ran[k]].id);
    }
    const Index index = index_of(profile_, "run");
    const std::vector<ReadyTask> tasks = tasks_of(profile_, index);
    const ReadyOrder sequence = ready_order(tasks);
    std::vector<bool> is_needed(tasks.size());
    for (const ReadyTask& task : tasks) {
      for (const std::uint32_t need : task.needs) is_needed[need] = true;
    }
    std::vector<std::uint32_t> roots;
    for (std::uint32_t k = 0; k < tasks.size(); ++k) {
      if (tasks[k].takes_step && !is_needed[k]) roots.push_back(k);
    }
    const std::vector<std::int64_t> numbers = post_order(tasks, roots);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      if (!tasks[k].takes_step) continue;
      exec.operators[k].extra.input_update_time = sequence.ready_at[k];
      exec.operators[k].extra.dfs_step_num = numbers[k];
    }
  }

  // One address space: values that live for the whole run first, then the arena with shared
  // addresses.
  void put_addresses() {
    GraphExec& exec = profile_.graph_exec;
    std::unordered_map<ItemId, std::int64_t> shared;
    for (const NodeId id : graph_.nodes_in_order()) {
      for (const ValueId result : graph_.node(id).results) {
        if (!result) continue;
        const auto var = writer_.find_var(result);
        const auto address = facts_.addresses.find(graph_.value(result).name);
        if (var && address != facts_.addresses.end()) shared[*var] = address->second;
      }
    }
    std::int64_t next = kFirstAddress;
    std::unordered_map<std::string, const MemChunk*> chunks;
    for (MemChunk& chunk : exec.mem_chunks) {
      if (shared.contains(chunk.owner_var)) continue;
      chunk.dev_ptr = next;
      next = aligned(next + std::max<std::int64_t>(chunk.size, 1));
    }
    for (MemChunk& chunk : exec.mem_chunks) {
      if (const auto found = shared.find(chunk.owner_var); found != shared.end())
        chunk.dev_ptr = next + found->second;
      chunks[chunk.key] = &chunk;
    }
    const std::uint32_t all = order(
        {"prev_dev_ptr_end", "flag", "comp_node", "prev_dev_ptr", "force_update_src", "dev_ptr",
         "mem_plan", "mem_readonly_fwd_src", "name", "static_infer_tags", "id", "node_type"});
    for (VarNode& var : exec.vars) {
      if (!var.mem_plan) continue;
      const auto found = chunks.find(var.mem_plan->mem_chunk_id);
      if (found == chunks.end() || found->second->size == 0) continue;
      var.order = all;
      var.dev_ptr = var.prev_dev_ptr = *found->second->dev_ptr + var.mem_plan->offset_byte;
      var.prev_dev_ptr_end = *found->second->dev_ptr + found->second->size;
    }
  }

  const Graph& graph_;
  const RunFacts& facts_;
  ProfileWriter writer_;
  MegEngineProfile profile_;
  std::unordered_map<ItemId, std::size_t> producer_;
  std::vector<std::optional<double>> begins_;  // start time, by operator
};

}  // namespace

MegEngineProfile write_run(const Graph& graph, const RunFacts& facts) {
  const Graph bound = with_least_symbols(graph, facts.symbols);
  return RunWriter(bound, facts).run();
}

}  // namespace tenon::documents::megengine
