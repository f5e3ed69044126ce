#include "base/text.h"
#include "documents/megengine/check.h"
#include "documents/megengine/import.h"
#include "documents/megengine/memory.h"
#include "documents/megengine/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace tenon::documents::megengine {
namespace {

constexpr std::size_t kTopCount = 10, kAliveCount = 8, kTypeCount = 20, kNameLength = 56;

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return "?";
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
std::string milliseconds(double seconds) { return fixed(seconds * 1e3, 3); }
// Unit for all numbers of one column, chosen by their total.
struct ColumnUnit {
  double factor = 1e-9;
  const char* prefix = "G";

  explicit ColumnUnit(double total) {
    if (total < 1e6) {
      factor = 1e-3;
      prefix = "k";
    } else if (total < 1e9) {
      factor = 1e-6;
      prefix = "M";
    }
  }
  std::string operator()(double value) const { return fixed(value * factor, 3); }
};
std::string with_unit(double value, std::string_view unit) {
  const ColumnUnit scale(value);
  return concat(scale(value), " ", scale.prefix, unit);
}
std::string percent(double part, double whole) {
  return whole > 0 ? fixed(100 * part / whole, 1) + " %" : "-";
}
std::string counted(std::int64_t count, std::string_view what) {
  return concat(count, " ", what, count == 1 ? "" : "s");
}
std::string shortened(const std::string& name) {
  if (name.size() <= kNameLength) return name;
  std::size_t end = kNameLength;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80)
    --end;  // not inside a character
  return name.substr(0, end) + "…";
}

// Total over all comp nodes, or over all threads of the host.
double time_of(const Measured* measured) {
  double total = 0;
  if (measured == nullptr) return total;
  for (const auto& [place, times] : measured->at) {
    if (times.start && times.end && std::isfinite(*times.start) && std::isfinite(*times.end)) {
      total += *times.end - *times.start;
    }
  }
  return total;
}

struct TypeTotal {
  std::size_t count = 0;
  double computation = 0, memory = 0, device = 0, host = 0;
};

class Description {
 public:
  Description(const MegEngineProfile& profile, const Index& index)
      : profile_(profile),
        index_(index),
        inference_(infer_profile(profile, index)),
        facts_(facts_of(profile, index, inference_)),
        lifetimes_(lifetimes_of(profile, index, facts_)) {}

  Page page() {
    add_up();
    Page page;
    page.title =
        "A MegEngine profile: a compiled graph, the order it runs in, its memory, and what a run "
        "of it took";
    page.sections = {about(), totals(), by_type(), slowest(), memory(), legend()};
    std::erase_if(page.sections,
                  [](const Page::Section& section) { return section.heading.empty(); });
    return page;
  }

 private:
  const Operator& opr(std::size_t k) const { return profile_.graph_exec.operators[k]; }

  void add_up() {
    double first = INFINITY, last = -INFINITY;
    for (std::size_t k : index_.sequence) {
      TypeTotal& sum = by_type_[opr(k).type];
      for (TypeTotal* each : {&sum, &total_}) {
        ++each->count;
        if (const OprFootprint* footprint = index_.footprint[k]) {
          each->computation += static_cast<double>(footprint->computation.value_or(0));
          each->memory += static_cast<double>(footprint->memory);
        }
        each->device += time_of(index_.device[k]);
        each->host += time_of(index_.host[k]);
      }
      if (index_.device[k] == nullptr) continue;
      for (const auto& [place, times] : index_.device[k]->at) {
        if (times.start) first = std::min(first, *times.start);
        if (times.end) last = std::max(last, *times.end);
      }
    }
    if (std::isfinite(first) && std::isfinite(last)) window_ = last - first;
  }

  Page::Section about() const {
    const GraphExec& exec = profile_.graph_exec;
    std::map<std::string, std::size_t> comp_nodes;
    for (const VarNode& var : exec.vars) ++comp_nodes[var.comp_node];
    std::vector<std::string> places;
    for (const auto& [name, count] : comp_nodes)
      places.push_back(concat(name, " (", counted(static_cast<std::int64_t>(count), "var"), ")"));
    Page::Section section{"The network", "", {}, {}};
    const bool has_rest = exec.operators.size() > exec.comp_seq.size();
    section.text = concat(exec.operators.size(), " operators make ", exec.vars.size(), " vars; ",
                          exec.comp_seq.size(), " operators are executed",
                          has_rest ? concat(", ", exec.operators.size() - exec.comp_seq.size(),
                                            " only help to infer shapes before a run")
                                   : "",
                          ". Comp nodes (device and stream): ", join(places, ", "), ".");
    section.columns = {"", "var", "shape", "elements"};
    for (std::size_t k : index_.sequence) {
      const bool is_input = opr(k).input.empty() && !has_flag_of_constant(k);
      const bool is_output = opr(k).type == "OutputCallback";
      const auto& vars = is_output ? index_.inputs[k] : index_.outputs[k];
      if (!is_input && !is_output) continue;
      for (std::size_t var : vars) {
        if (facts_[var].shape.empty()) continue;
        section.rows.push_back({is_output ? "output" : "input", shortened(exec.vars[var].name),
                                to_text(facts_[var].shape),
                                concat(facts_[var].element_bits, " bits")});
        if (section.rows.size() >= kTypeCount) return section;
      }
    }
    if (section.rows.empty()) section.columns.clear();
    return section;
  }

  bool has_flag_of_constant(std::size_t k) const {
    const auto& outputs = index_.outputs[k];
    return opr(k).type != "Host2DeviceCopy" && !outputs.empty() &&
           has_flag(profile_.graph_exec.vars[outputs.front()], "PERSISTENT_DEVICE_VALUE");
  }

  Page::Section totals() const {
    Page::Section section{"In total", "", {"", ">total"}, {}};
    section.rows = {
        {"arithmetic", Page::Cell(with_unit(total_.computation, "FLO"), total_.computation)},
        {"bytes read and written", Page::Cell(with_unit(total_.memory, "B"), total_.memory)}};
    if (!profile_.profiler.device.empty()) {
      section.rows.push_back({"on the device, operator by operator",
                              Page::Cell(milliseconds(total_.device) + " ms", total_.device)});
      section.rows.push_back({"from the first start to the last end",
                              Page::Cell(milliseconds(window_) + " ms", window_)});
      section.rows.push_back({"arithmetic a second, over that",
                              with_unit(rate(total_.computation, window_), "FLOP/s")});
    }
    if (!profile_.profiler.host.empty()) {
      section.rows.push_back({"work of the host, to hand it all over",
                              Page::Cell(milliseconds(total_.host) + " ms", total_.host)});
    }
    if (profile_.profiler.host.empty() && profile_.profiler.device.empty())
      section.text = "No run was timed.";
    return section;
  }

  static double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

  Page::Section by_type() const {
    std::vector<std::pair<std::string, TypeTotal>> rows(by_type_.begin(), by_type_.end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.device, a.second.computation) >
             std::pair(b.second.device, b.second.computation);
    });
    Page::Section section{"By type of operator", "", {}, {}};
    const ColumnUnit operations(total_.computation), bytes(total_.memory);
    section.columns = {"type",
                       ">operators",
                       concat(">", operations.prefix, "FLO"),
                       concat(">", bytes.prefix, "B"),
                       ">device ms",
                       ">share"};
    for (const auto& [type, sum] : rows) {
      if (section.rows.size() == kTypeCount) {
        section.rows.push_back(
            {concat("… ", rows.size() - kTypeCount, " more"), "", "", "", "", ""});
        break;
      }
      section.rows.push_back({shortened(type), std::to_string(sum.count),
                              operations(sum.computation), bytes(sum.memory),
                              milliseconds(sum.device), percent(sum.device, total_.device)});
    }
    return section;
  }

  Page::Section slowest() const {
    Page::Section section;
    if (total_.device <= 0) return section;
    std::vector<std::size_t> order = index_.sequence;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return time_of(index_.device[a]) > time_of(index_.device[b]);
    });
    section.heading = "The operators that take longest on the device";
    section.columns = {"id", "name", "result", ">ms", ">share", ">GFLOP/s", ">GB/s"};
    for (std::size_t k : order) {
      if (section.rows.size() == kTopCount) break;
      const double time = time_of(index_.device[k]);
      const OprFootprint* footprint = index_.footprint[k];
      const double computation =
          footprint ? static_cast<double>(footprint->computation.value_or(0)) : 0;
      const double bytes = footprint ? static_cast<double>(footprint->memory) : 0;
      section.rows.push_back(
          {std::to_string(opr(k).id), shortened(opr(k).name),
           index_.outputs[k].empty() ? "" : to_text(facts_[index_.outputs[k].front()].shape),
           milliseconds(time), percent(time, total_.device),
           fixed(rate(computation, time) * 1e-9, 0), fixed(rate(bytes, time) * 1e-9, 0)});
    }
    return section;
  }

  Page::Section memory() const {
    const GraphExec& exec = profile_.graph_exec;
    Page::Section section{"Memory", "", {}, {}};
    std::int64_t constants = 0, constant_count = 0, workspace = 0, workspace_count = 0, largest = 0;
    for (std::size_t var = 0; var < exec.vars.size(); ++var) {
      const std::int64_t bytes = facts_[var].byte_count();
      if (is_workspace(exec.vars[var])) {
        workspace_count += bytes > 0;
        workspace = saturating_sum(workspace, bytes);
        largest = std::max(largest, bytes);
      } else if (index_.is_executed(index_.producer[var]) &&
                 has_flag_of_constant(index_.producer[var])) {
        ++constant_count;
        constants = saturating_sum(constants, bytes);
      }
    }
    std::size_t planned = 0;
    for (const VarNode& var : exec.vars) planned += var.mem_plan.has_value();
    const DynamicPeak peak =
        live_peak(lifetimes_, index_.sequence.size(), bytes_by_shape(lifetimes_));
    section.text = concat(with_commas(constants), " bytes in ", counted(constant_count, "constant"),
                          ". ", planned, " of ", exec.vars.size(), " vars have a plan in one of ",
                          exec.mem_chunks.size(),
                          " chunks; the others had none any more when the file was written. ",
                          counted(workspace_count, "operator"), " had workspace, at most ",
                          with_commas(largest), " bytes at once.");
    if (index_.sequence.empty() || peak.byte_count == 0) return section;
    const Operator& at = opr(index_.sequence[peak.step]);
    section.text += concat("\nBeside constants and inputs, at most ", with_commas(peak.byte_count),
                           " bytes are alive: at step ", peak.step + 1, ", operator ", at.id, " ",
                           shortened(at.name), ":");
    section.columns = {"alive there", "shape", ">bytes", ">made at step", ">last read at step"};
    std::vector<const VarStorage*> alive;
    for (const VarStorage& storage : lifetimes_.storages) {
      const bool is_there = storage.begin <= peak.step && peak.step <= storage.end;
      if (storage.is_dynamic && is_there && storage.byte_count > 0) alive.push_back(&storage);
    }
    std::stable_sort(alive.begin(), alive.end(), [](const VarStorage* a, const VarStorage* b) {
      return a->byte_count > b->byte_count;
    });
    for (const VarStorage* storage : alive) {
      if (section.rows.size() == kAliveCount) {
        section.rows.push_back({concat("… ", alive.size() - kAliveCount, " more"), "", "", "", ""});
        break;
      }
      section.rows.push_back({shortened(short_name(exec.vars[storage->owner].name)),
                              to_text(facts_[storage->owner].shape),
                              with_commas(storage->byte_count), std::to_string(storage->begin + 1),
                              std::to_string(storage->end + 1)});
    }
    return section;
  }

  static Page::Section legend() {
    Page::Section section{"What the fields mean", "", {"field", "meaning"}, {}};
    section.rows = {
        {"profiler.host, .device",
         "seconds from a zero of their own: start (handed over), kern (kernel begins), end"},
        {"profiler.opr_footprint",
         "operations and bytes by formula, shapes, parameters; no operations are null"},
        {"graph_exec.comp_seq",
         "operators as they run: ready ones by priority, then the one ready last, then the larger "
         "id"},
        {"operator",
         "reads and makes vars; ids of both come from one counter, outputs follow their operator"},
        {"extra",
         "input_update_time: step after which it was ready; dfs_step_num: its place in a walk from "
         "the outputs"},
        {"waiting_spec", "vars of other comp nodes to wait for; null: not executed"},
        {"var",
         "a tensor: flags, memory, addresses (prev_dev_ptr: the last it had), static_infer_tags"},
        {"mem_plan, mem_chunk",
         "a part of an allocation; chunks are named for the var that owns them"},
        {"static_infer_tags",
         "when shape and value are known: CONST, RT_STATIC before a run, MISSING_INP in it, "
         "NO_DESC never"},
    };
    return section;
  }

  const MegEngineProfile& profile_;
  const Index& index_;
  Inference inference_;
  std::vector<VarFacts> facts_;
  Lifetimes lifetimes_;
  std::map<std::string, TypeTotal> by_type_;
  TypeTotal total_;
  double window_ = 0;
};

}  // namespace

Page describe_profile(const MegEngineProfile& profile, const Index& index) {
  return Description(profile, index).page();
}

}  // namespace tenon::documents::megengine
