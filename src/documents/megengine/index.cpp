#include "documents/megengine/index.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::documents::megengine {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

class ProfileIndexer {
 public:
  ProfileIndexer(const MegEngineProfile& profile, std::string_view source)
      : exec_(profile.graph_exec), profile_(profile), source_(source) {}

  Index build() {
    number_items();
    connect();
    place_in_sequence();
    attach_profiler();
    check_vars();
    order();
    return std::move(index_);
  }

 private:
  Error problem(std::string summary, const std::string& path) const {
    Error error(std::move(summary));
    error.at(source_, ", ", path);
    return error;
  }

  void number_items() {
    for (std::size_t k = 0; k < exec_.operators.size(); ++k)
      index_.operators.emplace(exec_.operators[k].id, k);
    for (std::size_t k = 0; k < exec_.vars.size(); ++k) {
      const VarNode& var = exec_.vars[k];
      if (index_.operators.contains(var.id)) {
        throw problem("an operator has this number already", var_path(var)).got(var.id);
      }
      index_.vars.emplace(var.id, k);
    }
    for (std::size_t k = 0; k < exec_.mem_chunks.size(); ++k)
      index_.chunks.emplace(exec_.mem_chunks[k].key, k);
    for (const MemChunk& chunk : exec_.mem_chunks) {
      var_at(chunk.owner_var,
             [&] { return concat("$.graph_exec.mem_chunk.", chunk.key, ".owner_var"); });
    }
  }

  template <class Path>
  std::size_t var_at(ItemId id, const Path& path) const {
    const auto found = index_.vars.find(id);
    if (found == index_.vars.end()) throw problem("there is no such var", path()).got(id);
    return found->second;
  }
  template <class Path>
  std::size_t operator_at(ItemId id, const Path& path) const {
    const auto found = index_.operators.find(id);
    if (found == index_.operators.end()) throw problem("there is no such operator", path()).got(id);
    return found->second;
  }

  std::vector<std::size_t> vars_at(const std::vector<ItemId>& ids, const std::string& list) const {
    std::vector<std::size_t> positions;
    for (ItemId id : ids) {
      positions.push_back(var_at(id, [&] { return concat(list, "[", positions.size(), "]"); }));
    }
    return positions;
  }

  void connect() {
    index_.producer.assign(exec_.vars.size(), kNone);
    index_.readers.resize(exec_.vars.size());
    index_.read_as.resize(exec_.vars.size());
    for (std::size_t k = 0; k < exec_.operators.size(); ++k) {
      const Operator& opr = exec_.operators[k];
      const std::string path = operator_path(opr);
      index_.inputs.push_back(vars_at(opr.input, path + ".input"));
      index_.outputs.push_back(vars_at(opr.output, path + ".output"));
      for (std::size_t var : index_.outputs.back()) {
        if (index_.producer[var] != kNone) {
          throw problem("two operators make the same var", path + ".output")
              .got("var ", exec_.vars[var].id, ", also of operator ",
                   exec_.operators[index_.producer[var]].id);
        }
        index_.producer[var] = k;
      }
      for (std::size_t position = 0; position < index_.inputs.back().size(); ++position) {
        index_.readers[index_.inputs.back()[position]].push_back(k);
        index_.read_as[index_.inputs.back()[position]].push_back(position);
      }
      if (!opr.waiting_spec) continue;
      for (const Waiting& waiting : *opr.waiting_spec) {
        vars_at(waiting.dev_ready, concat(path, ".waiting_spec.", waiting.comp_node, ".dev_ready"));
      }
    }
    for (std::size_t k = 0; k < exec_.vars.size(); ++k) {
      if (index_.producer[k] == kNone) {
        throw problem("no operator makes this var", var_path(exec_.vars[k])).got(exec_.vars[k].id);
      }
    }
  }

  void place_in_sequence() {
    index_.step.resize(exec_.operators.size());
    for (std::size_t k = 0; k < exec_.comp_seq.size(); ++k) {
      const auto path = [&] { return concat("$.graph_exec.comp_seq[", k, "]"); };
      const std::size_t opr = operator_at(exec_.comp_seq[k], path);
      if (index_.step[opr]) {
        throw problem("an operator comes twice in the sequence", path()).got(exec_.comp_seq[k]);
      }
      index_.step[opr] = k;
      index_.sequence.push_back(opr);
    }
  }

  void attach_profiler() {
    const std::size_t count = exec_.operators.size();
    index_.footprint.assign(count, nullptr);
    index_.host.assign(count, nullptr);
    index_.device.assign(count, nullptr);
    const auto attach = [&](const auto& list, auto& table, std::string_view part) {
      for (const auto& entry : list) {
        table[operator_at(entry.opr, [&] { return concat("$.profiler.", part, ".", entry.opr); })] =
            &entry;
      }
    };
    attach(profile_.profiler.opr_footprint, index_.footprint, "opr_footprint");
    attach(profile_.profiler.host, index_.host, "host");
    attach(profile_.profiler.device, index_.device, "device");
  }

  void check_vars() {
    index_.chunk.resize(exec_.vars.size());
    for (std::size_t k = 0; k < exec_.vars.size(); ++k) {
      const VarNode& var = exec_.vars[k];
      const auto at = [&](std::string_view member) {
        return [&var, member] { return concat(var_path(var), ".", member); };
      };
      if (var.mem_readonly_fwd_src) var_at(*var.mem_readonly_fwd_src, at("mem_readonly_fwd_src"));
      if (var.force_update_src) var_at(*var.force_update_src, at("force_update_src"));
      for (const InferTag* tag : {&var.static_infer_tags.shape, &var.static_infer_tags.value}) {
        for (const InferTag::Dep& dep : tag->deps) var_at(dep.var, at("static_infer_tags"));
      }
      if (!var.mem_plan) continue;
      const auto found = index_.chunks.find(var.mem_plan->mem_chunk_id);
      if (found == index_.chunks.end()) {
        throw problem("there is no such memory chunk", at("mem_plan.mem_chunk_id")())
            .got(var.mem_plan->mem_chunk_id);
      }
      index_.chunk[k] = found->second;
    }
  }

  // Kahn's algorithm: operators in the order they become ready, independent of the file's sequence.
  void order() {
    const std::size_t count = exec_.operators.size();
    std::vector<std::size_t> missing(count);
    for (std::size_t k = 0; k < count; ++k) missing[k] = index_.inputs[k].size();
    for (std::size_t k = 0; k < count; ++k) {
      if (missing[k] == 0) index_.order.push_back(k);
    }
    for (std::size_t done = 0; done < index_.order.size(); ++done) {
      for (std::size_t var : index_.outputs[index_.order[done]]) {
        for (std::size_t reader : index_.readers[var]) {
          if (--missing[reader] == 0) index_.order.push_back(reader);
        }
      }
    }
    if (index_.order.size() == count) return;
    const std::size_t stuck = static_cast<std::size_t>(
        std::find_if(missing.begin(), missing.end(), [](std::size_t left) { return left > 0; }) -
        missing.begin());
    throw problem("operators read each other's results in a circle",
                  operator_path(exec_.operators[stuck]))
        .got(count - index_.order.size(), " operators on a cycle or after one");
  }

  const GraphExec& exec_;
  const MegEngineProfile& profile_;
  std::string_view source_;
  Index index_;
};

}  // namespace

Index index_of(const MegEngineProfile& profile, std::string_view source) {
  return ProfileIndexer(profile, source).build();
}

std::vector<ReadyTask> tasks_of(const MegEngineProfile& profile, const Index& index) {
  const GraphExec& exec = profile.graph_exec;
  std::vector<ReadyTask> tasks(exec.operators.size());
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    tasks[k].id = exec.operators[k].id;
    tasks[k].priority = exec.operators[k].extra.priority.value_or(0);
    tasks[k].takes_step = index.is_executed(k);
    for (std::size_t var : index.inputs[k]) {
      tasks[k].needs.push_back(static_cast<std::uint32_t>(index.producer[var]));
    }
  }
  std::unordered_set<ItemId> updated;  // a second update of the same var makes the order ambiguous
  for (std::size_t k = 0; k < exec.vars.size(); ++k) {
    if (!exec.vars[k].force_update_src || !updated.insert(*exec.vars[k].force_update_src).second)
      continue;
    const std::size_t updater = index.producer[k];
    for (std::size_t reader : index.readers[index.vars.at(*exec.vars[k].force_update_src)]) {
      if (reader != updater) tasks[updater].needs.push_back(static_cast<std::uint32_t>(reader));
    }
  }
  return tasks;
}

std::string operator_path(const Operator& opr) { return concat("$.graph_exec.operator.", opr.id); }
std::string var_path(const VarNode& var) { return concat("$.graph_exec.var.", var.id); }
std::string footprint_path(const Operator& opr) {
  return concat("$.profiler.opr_footprint.", opr.id);
}

bool has_flag(const VarNode& var, std::string_view flag) {
  return std::find(var.flag.begin(), var.flag.end(), flag) != var.flag.end();
}

}  // namespace tenon::documents::megengine
