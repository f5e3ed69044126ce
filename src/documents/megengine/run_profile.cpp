#include "documents/megengine/run_profile.h"

#include "base/error.h"
#include "documents/megengine/import.h"
#include "documents/megengine/index.h"
#include "documents/megengine/memory.h"
#include "documents/megengine/write.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tenon::documents::megengine {
namespace {

// Merges all spans of a node in each lane: their times add up.
void add_times(const Profile& profile, const std::vector<Profile::Span>& spans,
               std::vector<RunFacts::Times>& times) {
  for (const Profile::Span& span : spans) {
    const std::string& place = profile.lanes[span.lane].name;
    const auto found = std::find_if(times.begin(), times.end(),
                                    [&](const auto& time) { return time.place == place; });
    if (found == times.end()) {
      times.push_back({place, span.start, span.kern, span.end});
    } else {
      found->end += span.end - span.start;
    }
  }
}

}  // namespace

std::string print_run(const Profile& profile, const Graph& graph) {
  RunFacts facts;
  for (const Profile::Symbol& symbol : profile.symbols)
    facts.symbols.emplace(symbol.name, Dim(symbol.value));
  for (const Profile::Step& step : profile.steps) {
    const bool is_copy = step.kind == Profile::Kind::Copy;
    auto& table = !is_copy ? facts.nodes : step.writes.empty() ? facts.outputs : facts.inputs;
    const auto [ran, is_new] = table.try_emplace(step.value);
    if (is_new) ran->second.begin = step.start();
    add_times(profile, step.device, ran->second.device);
    add_times(profile, step.host, ran->second.host);
  }
  std::map<std::uint32_t, std::uint64_t> arena_bytes;
  for (const Profile::Buffer& buffer : profile.buffers) {
    if (buffer.place != Profile::BufferKind::Arena) continue;
    arena_bytes[buffer.arena] = std::max(arena_bytes[buffer.arena], buffer.offset + buffer.bytes);
  }
  std::map<std::uint32_t, std::uint64_t> base;
  std::uint64_t next = 0;
  for (const auto& [arena, bytes] : arena_bytes) {
    base[arena] = next;
    next += (bytes + 4095) / 4096 * 4096;
  }
  for (const Profile::Buffer& buffer : profile.buffers) {
    if (buffer.place == Profile::BufferKind::Arena)
      facts.addresses.try_emplace(buffer.name, base[buffer.arena] + buffer.offset);
  }
  return print_profile(write_run(graph, facts));
}

namespace {

class MegEngineReader {
 public:
  MegEngineReader(const MegEngineProfile& document, const Index& index)
      : document_(document),
        index_(index),
        inference_(infer_profile(document, index)),
        facts_(facts_of(document, index, inference_)) {}

  Profile run() {
    profile_.origin = "megengine";
    profile_.runs = document_.profiler.device.empty() && document_.profiler.host.empty() ? 0 : 1;
    for (const std::size_t opr : index_.sequence) add_step(opr);
    move_to_zero();
    add_buffers();
    link_steps();
    std::set<std::string> threads;
    for (const Profile::Lane& lane : profile_.lanes) {
      if (lane.is_device) profile_.device += (profile_.device.empty() ? "" : ", ") + lane.name;
      if (!lane.is_device) threads.insert(lane.name);
    }
    profile_.thread_count = static_cast<std::uint32_t>(std::max<std::size_t>(threads.size(), 1));
    profile_.notes.emplace_back(
        "Host and device have clocks of their own; each is shown from its own first event.");
    return std::move(profile_);
  }

 private:
  std::uint32_t lane(const std::string& name, bool is_device) {
    for (std::uint32_t k = 0; k < profile_.lanes.size(); ++k) {
      if (profile_.lanes[k].name == name && profile_.lanes[k].is_device == is_device) return k;
    }
    profile_.lanes.push_back({name, is_device});
    return static_cast<std::uint32_t>(profile_.lanes.size() - 1);
  }

  void add_spans(const Measured* measured, bool is_device, std::vector<Profile::Span>& spans) {
    if (measured == nullptr) return;
    for (const auto& [place, times] : measured->at) {
      if (!times.start || !times.end || !std::isfinite(*times.start) || !std::isfinite(*times.end))
        continue;
      const double kern = times.kern && std::isfinite(*times.kern) ? *times.kern : *times.start;
      spans.push_back({lane(place, is_device), *times.start, kern, *times.end});
    }
  }

  void add_step(std::size_t opr) {
    const Operator& node = document_.graph_exec.operators[opr];
    Profile::Step step;
    step.name = step.value = node.name;
    step.op = node.type;
    step.source = std::to_string(node.id);
    step.kernel = node.type;
    add_spans(index_.device[opr], true, step.device);
    add_spans(index_.host[opr], false, step.host);
    if (const OprFootprint* footprint = index_.footprint[opr]) {
      step.bytes = static_cast<double>(footprint->memory);
      step.memory = step.bytes;
      if (footprint->computation)
        step.computation = step.flops = static_cast<double>(*footprint->computation);
    }
    const double seconds = step.last_seconds();
    step.seconds = {seconds, seconds, seconds, seconds};
    step_of_[opr] = static_cast<std::uint32_t>(profile_.steps.size());
    profile_.steps.push_back(std::move(step));
  }

  void move_to_zero() {
    const auto move = [&](std::vector<Profile::Span> Profile::Step::*which) {
      double first = INFINITY, last = 0;
      for (const Profile::Step& step : profile_.steps) {
        for (const Profile::Span& span : step.*which) first = std::min(first, span.start);
      }
      for (Profile::Step& step : profile_.steps) {
        for (Profile::Span& span : step.*which) {
          span.start -= first;
          span.kern -= first;
          span.end -= first;
          last = std::max(last, span.end);
        }
      }
      return last;
    };
    const double device = move(&Profile::Step::device), host = move(&Profile::Step::host);
    profile_.last_run_seconds = device > 0 ? device : host;
    const double seconds = profile_.last_run_seconds;
    profile_.run_seconds = {seconds, seconds, seconds, seconds};
  }

  // Vars with memory, at addresses relative to the lowest one.
  void add_buffers() {
    const GraphExec& exec = document_.graph_exec;
    const Lifetimes lifetimes = lifetimes_of(document_, index_, facts_);
    std::map<std::size_t, const VarStorage*> storage;
    for (const VarStorage& each : lifetimes.storages) storage[each.owner] = &each;
    std::map<bool, std::int64_t> lowest;
    const auto address = [&](const VarNode& var) {
      return var.dev_ptr ? *var.dev_ptr : var.prev_dev_ptr.value_or(0);
    };
    const auto is_dynamic = [&](std::size_t k) {
      return storage.contains(k) && storage.at(k)->is_dynamic;
    };
    for (std::size_t k = 0; k < exec.vars.size(); ++k) {
      if (address(exec.vars[k]) == 0) continue;
      const auto [found, is_new] = lowest.try_emplace(is_dynamic(k), address(exec.vars[k]));
      if (!is_new) found->second = std::min(found->second, address(exec.vars[k]));
    }
    const auto last_step =
        static_cast<std::uint32_t>(profile_.steps.empty() ? 0 : profile_.steps.size() - 1);
    for (std::size_t k = 0; k < exec.vars.size(); ++k) {
      const VarNode& var = exec.vars[k];
      Profile::Buffer buffer;
      buffer.name = var.name;
      buffer.dtype = var.mem_plan                   ? var.mem_plan->layout.dtype
                     : facts_[k].element_bits == 32 ? "Float32"
                                                    : concat(facts_[k].element_bits, " bits");
      buffer.shape = facts_[k].shape;
      buffer.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(facts_[k].byte_count(), 0));
      buffer.place = is_dynamic(k) ? Profile::BufferKind::Arena : Profile::BufferKind::Constant;
      if (address(var) != 0)
        buffer.offset = static_cast<std::uint64_t>(address(var) - lowest[is_dynamic(k)]);
      buffer.last_step = last_step;
      if (const auto found = storage.find(k); found != storage.end()) {
        buffer.first_step = std::min(static_cast<std::uint32_t>(found->second->begin), last_step);
        buffer.last_step = std::min(static_cast<std::uint32_t>(found->second->end), last_step);
      }
      if (var.mem_readonly_fwd_src) {
        buffer.inside = static_cast<std::uint32_t>(index_.vars.at(*var.mem_readonly_fwd_src));
        buffer.place = Profile::BufferKind::Arena;
      } else if (buffer.place == Profile::BufferKind::Arena && address(var) == 0) {
        buffer.bytes = 0;  // never had memory
      }
      if (buffer.place == Profile::BufferKind::Arena && !buffer.inside) {
        profile_.arena_bytes = std::max(profile_.arena_bytes, buffer.offset + buffer.bytes);
      } else if (buffer.place == Profile::BufferKind::Constant) {
        profile_.constant_bytes += buffer.bytes;
      }
      profile_.buffers.push_back(std::move(buffer));
    }
  }

  void link_steps() {
    for (const auto& [opr, k] : step_of_) {
      Profile::Step& step = profile_.steps[k];
      std::set<std::uint32_t> after;
      for (const std::size_t var : index_.inputs[opr]) {
        step.reads.push_back(static_cast<std::uint32_t>(var));
        const auto maker = step_of_.find(index_.producer[var]);
        if (maker != step_of_.end() && maker->second != k) after.insert(maker->second);
      }
      for (const std::size_t var : index_.outputs[opr]) {
        if (!is_workspace(document_.graph_exec.vars[var]))
          step.writes.push_back(static_cast<std::uint32_t>(var));
      }
      step.after.assign(after.begin(), after.end());
    }
  }

  const MegEngineProfile& document_;
  const Index& index_;
  Inference inference_;
  std::vector<VarFacts> facts_;
  Profile profile_;
  std::map<std::size_t, std::uint32_t> step_of_;
};

}  // namespace

Profile run_profile(const MegEngineProfile& document, const Index& index, std::string_view source) {
  Profile profile = MegEngineReader(document, index).run();
  profile.name = source.substr(source.rfind('/') + 1);
  return profile;
}

}  // namespace tenon::documents::megengine
