#include "profile/fill.h"

#include "base/error.h"
#include "documents/document.h"
#include "driver/explain.h"
#include "expr/analysis.h"
#include "expr/fused_groups.h"
#include "expr/node_label.h"
#include "models/inputs.h"

#include <algorithm>
#include <set>

namespace tenon::profile {
namespace {

constexpr const char *kProcessorStream = "cpu0:0", *kDeviceStream = "gpu0:0";

// A node and its graph: the graph itself or a body of one of its nodes.
struct FoundNode {
  const Graph* graph = nullptr;
  NodeId node;
};

void index_nodes(const Graph& graph, std::map<std::string, FoundNode>& found) {
  for (const NodeId id : graph.nodes_in_order()) {
    for (const ValueId result : graph.node(id).results) {
      if (result) found.try_emplace(graph.value(result).name, FoundNode{&graph, id});
    }
    if (is_fused_group(graph, id)) continue;
    for (const Graph& body : graph.node(id).bodies) index_nodes(body, found);
  }
}

Profile::BufferKind place_of(Program::BufferKind place) {
  switch (place) {
    case Program::BufferKind::Input:
      return Profile::BufferKind::Input;
    case Program::BufferKind::Output:
      return Profile::BufferKind::Output;
    case Program::BufferKind::Constant:
      return Profile::BufferKind::Constant;
    default:
      return Profile::BufferKind::Arena;
  }
}

class Filler {
 public:
  Filler(Profile& profile, const CompiledModel& model, const WatchedRun& last,
         const StepSamples& samples, const std::vector<Datum>& inputs,
         const driver::CompileRecord* compiled)
      : profile_(profile),
        model_(model),
        last_(last),
        samples_(samples),
        inputs_(inputs),
        compiled_(compiled) {
    zero_ = last.copies.empty() ? last.events.begin
                                : std::min(last.events.begin, last.copies.front().start);
  }

  void run() {
    profile_.origin = "tenon";
    profile_.name = model_.program().name;
    profile_.target = model_.program().target;
    profile_.lanes.push_back({model_.is_on_device() ? kDeviceStream : kProcessorStream, true});
    for (std::uint32_t k = 0; k < profile_.thread_count; ++k)
      profile_.lanes.push_back({concat("thread ", k), false});
    bind_symbols();
    if (compiled_ != nullptr) {
      index_nodes(compiled_->graph, nodes_);
      for (const codegen::Decision& decision : compiled_->decisions)
        decisions_[node_of(decision)].push_back(&decision);
    }
    add_copies(true);
    add_steps();
    add_copies(false);
    add_spans();
    add_buffers();
    link_steps();
    share_out_symbolic_work();
    add_formulas();
    add_passes();
    profile_.arena_bytes = model_.executor().arena_bytes();
    profile_.scratch_bytes = model_.executor().scratch_bytes();
    profile_.constant_bytes = model_.totals().constant_bytes;
  }

 private:
  using Key = StepSamples::Key;

  double seconds(std::uint64_t tick) const {
    return static_cast<double>(static_cast<std::int64_t>(tick - zero_)) * seconds_per_tick();
  }

  void bind_symbols() {
    std::map<std::string, Shape> shapes;
    const auto& ports = model_.program().inputs;
    for (std::size_t k = 0; k < ports.size() && k < inputs_.size(); ++k) {
      if (inputs_[k].is_tensor())
        shapes[model_.program().buffers[ports[k]].name] = inputs_[k].tensor().shape();
    }
    if (compiled_ != nullptr) symbols_ = models::symbol_values(compiled_->graph, shapes);
    for (const auto& [name, value] : symbols_)
      profile_.symbols.push_back({name, value.value().value_or(0)});
    if (compiled_ != nullptr) return;
    const KernelRunner& runner = model_.runner();
    for (std::size_t k = 0; k < runner.symbols.size(); ++k) {
      if (runner.is_known[k])
        profile_.symbols.push_back({model_.program().symbols[k].name, runner.symbols[k]});
    }
  }

  Profile::Step& add_step(const Key& key) {
    const auto [found, is_new] =
        index_.try_emplace(key, static_cast<std::uint32_t>(profile_.steps.size()));
    if (is_new) {
      profile_.steps.emplace_back();
      keys_.push_back(key);
      profile_.steps.back().seconds = samples_.spread(key);
    }
    return profile_.steps[found->second];
  }

  std::string port_name(const WatchedRun::Copy& copy) const {
    const Program& program = model_.program();
    return program.buffers[(copy.is_input ? program.inputs : program.outputs)[copy.port]].name;
  }

  void add_copies(bool is_input) {
    for (const WatchedRun::Copy& copy : last_.copies) {
      if (copy.is_input != is_input) continue;
      Profile::Step& step =
          add_step({is_input ? StepSamples::What::Input : StepSamples::What::Output,
                    static_cast<std::uint32_t>(copy.port)});
      step.value = port_name(copy);
      step.op = is_input ? "copy in" : "copy out";
      step.name = concat(step.op, " ", step.value);
      step.kind = Profile::Kind::Copy;
      step.kernel = step.candidate = "memcpy";
      step.device.push_back({0, seconds(copy.start), seconds(copy.kern), seconds(copy.end)});
      step.host.push_back({1, seconds(copy.start), seconds(copy.kern), seconds(copy.end)});
    }
  }

  void add_steps() {
    std::vector<const StepEvent*> order;
    for (const StepEvent& event : last_.events.steps) order.push_back(&event);
    std::stable_sort(order.begin(), order.end(),
                     [](const StepEvent* a, const StepEvent* b) { return a->start < b->start; });
    for (const StepEvent* event : order) {
      const Key key{StepSamples::What::Step, event->step};
      if (index_.contains(key)) continue;
      Profile::Step& step = add_step(key);
      const Program::Step& made = model_.program().steps[event->step];
      step.name = made.name;
      step.value = made.value;
      if (made.kind != Program::StepKind::Kernel) {
        step.kind = Profile::Kind::Operators;
        step.kernel = step.candidate = "operators";
      } else {
        step.kernel = model_.program().kernels[made.kernel].name;
        step.candidate = made.candidate;
        step.flops = made.flops;
        step.bytes = made.bytes;
      }
      describe(step, key);
    }
  }

  // A node may have several nests, each with its own name.
  std::string node_of(const codegen::Decision& decision) const {
    if (decision.node) {
      for (const ValueId result : compiled_->graph.node(decision.node).results) {
        if (result) return compiled_->graph.value(result).name;
      }
    }
    return decision.name;
  }

  // Adds the information of the graph and the compiler.
  void describe(Profile::Step& step, const Key& key) {
    const auto found = nodes_.find(step.value);
    step.op = step.kind == Profile::Kind::Operators ? "operators" : step.kernel;
    if (found == nodes_.end()) return;
    const auto& [graph, id] = found->second;
    step.op = op_label(*graph, id);
    step.source = source_label(*graph, id);
    if (is_fused_group(*graph, id)) {
      const Graph& body = graph->node(id).bodies.front();
      for (const NodeId member : body.nodes_in_order()) {
        if (body.node(member).results.empty() || !body.node(member).results.front()) continue;
        const std::string& name = body.value(body.node(member).results.front()).name;
        step.members.push_back(concat(name, " (", body.op_name(member), ")"));
        add_remarks(step, name);
      }
    }
    if (step.members.empty()) add_remarks(step, step.value);
    if (const codegen::Decision* decision = decision_of(step, key)) {
      for (const auto& [name, text] : driver::describe_decision(*decision).candidates)
        step.why.push_back({name, text});
    }
  }

  void add_remarks(Profile::Step& step, const std::string& name) const {
    for (const passes::Remarks::Entry& entry : compiled_->remarks.about(name)) {
      step.remarks.push_back(
          {entry.pass, step.members.empty() ? entry.text : concat(name, ": ", entry.text)});
    }
  }

  const codegen::Decision* decision_of(const Profile::Step& step, const Key& key) const {
    const auto found = decisions_.find(step.value);
    if (found == decisions_.end()) return nullptr;
    const auto is_chosen = [&](const codegen::Decision& decision) {
      return std::any_of(
          decision.selection.versions.begin(), decision.selection.versions.end(),
          [&](const codegen::Version& version) {
            return step.candidate.starts_with(decision.candidates[version.candidate].name);
          });
    };
    const codegen::Decision* best = nullptr;
    for (const codegen::Decision* decision : found->second) {
      if (!is_chosen(*decision)) continue;
      const bool is_here = key.second >= decision->first_step &&
                           key.second < decision->first_step + decision->step_count;
      if (is_here) return decision;
      if (best == nullptr) best = decision;
    }
    return best;
  }

  void add_spans() {
    const auto& events = last_.events.steps;
    for (std::size_t k = 0; k < events.size(); ++k) {
      const StepEvent& event = events[k];
      Profile::Step& step = profile_.steps[index_.at({StepSamples::What::Step, event.step})];
      if (event.inner == 0) {
        step.device.push_back({0, seconds(event.start), seconds(event.kern), seconds(event.end)});
      } else {
        add_around(step, k);
      }
      for (std::uint32_t p = 0; p < event.piece_count; ++p) {
        const PieceEvent& piece = last_.events.pieces[event.first_piece + p];
        if (event.inner == 0)
          step.host.push_back(
              {1 + piece.thread, seconds(event.start), seconds(piece.begin), seconds(piece.end)});
      }
    }
  }

  // Reports control flow as the time between the steps of its bodies, so that times add up.
  void add_around(Profile::Step& step, std::size_t k) {
    const auto& events = last_.events.steps;
    const StepEvent& event = events[k];
    std::uint64_t at = event.start;
    const auto add = [&](std::uint64_t begin, std::uint64_t end) {
      if (end <= begin) return;
      step.device.push_back({0, seconds(begin), seconds(begin), seconds(end)});
      step.host.push_back({1, seconds(begin), seconds(begin), seconds(end)});
    };
    std::size_t first = k;
    while (first > 0 && events[first - 1].start >= event.start) --first;
    std::vector<const StepEvent*> inner;
    for (std::size_t n = first; n < k; ++n) inner.push_back(&events[n]);
    std::stable_sort(inner.begin(), inner.end(),
                     [](const StepEvent* a, const StepEvent* b) { return a->start < b->start; });
    for (const StepEvent* each : inner) {
      if (each->start < at) continue;  // nested in a step that is already counted
      add(at, each->start);
      at = each->end;
    }
    add(at, event.end);
  }

  // Skipped steps are not in the profile; lifetimes follow from the executed steps.
  void add_buffers() {
    std::map<std::uint32_t, std::uint32_t> known;
    const Program& program = model_.program();
    for (std::uint32_t k = 0; k < keys_.size(); ++k) {
      const auto& [what, number] = keys_[k];
      if (what != StepSamples::What::Step) continue;
      for (const std::uint32_t id : program.steps[number].buffers) {
        const std::uint32_t root = root_of(program, id);
        if (program.buffers[root].element_bytes > 0) use_buffer(root, k, known);
      }
    }
    // The plan may keep a buffer longer than its first and last use.
    for (const auto& [number, id] : known) {
      const Program::Buffer& planned = program.buffers[number];
      Profile::Buffer& buffer = profile_.buffers[id];
      if (buffer.place != Profile::BufferKind::Arena) continue;
      const auto end = index_.upper_bound({StepSamples::What::Step, planned.last_step});
      for (auto at = index_.lower_bound({StepSamples::What::Step, planned.first_step}); at != end;
           ++at) {
        buffer.first_step = std::min(buffer.first_step, at->second);
        buffer.last_step = std::max(buffer.last_step, at->second);
      }
    }
    // Buffers of the caller live for the whole run.
    const auto last =
        static_cast<std::uint32_t>(profile_.steps.empty() ? 0 : profile_.steps.size() - 1);
    for (Profile::Buffer& buffer : profile_.buffers) {
      if (buffer.place == Profile::BufferKind::Arena) continue;
      if (buffer.place != Profile::BufferKind::Output) buffer.first_step = 0;
      if (buffer.place != Profile::BufferKind::Input) buffer.last_step = last;
    }
  }

  void use_buffer(std::uint32_t id, std::uint32_t k,
                  std::map<std::uint32_t, std::uint32_t>& known) {
    const Program::Buffer& planned = model_.program().buffers[id];
    const auto [found, is_new] =
        known.try_emplace(id, static_cast<std::uint32_t>(profile_.buffers.size()));
    Profile::Step& step = profile_.steps[k];
    const auto note = [](std::vector<std::uint32_t>& list, std::uint32_t buffer) {
      if (std::find(list.begin(), list.end(), buffer) == list.end()) list.push_back(buffer);
    };
    if (is_new) {
      Profile::Buffer buffer;
      buffer.name = planned.name.empty() ? concat(step.value, " (temporary)") : planned.name;
      buffer.dtype = planned.dtype;
      buffer.place = place_of(planned.place);
      buffer.first_step = buffer.last_step = k;
      // Several buffers of one name arise from rematerialization or offloading: after offloading,
      // the first reader does not produce the value.
      if (buffer.place == Profile::BufferKind::Arena && !planned.name.empty() &&
          !arena_names_.insert(planned.name).second)
        buffer.making = makes(step, buffer.name) ? Profile::Making::Again : Profile::Making::Back;
      const KernelRunner& runner = model_.runner();
      if (std::ranges::all_of(planned.dims,
                              [&](const Extent& dim) { return runner.is_resolved(dim); })) {
        buffer.shape = shape_of(planned);
        buffer.bytes = planned.element_bytes;
        for (const std::int64_t extent : buffer.shape)
          buffer.bytes *= static_cast<std::uint64_t>(extent);
        buffer.offset = planned.place == Program::BufferKind::Arena ? runner.offsets[id] : 0;
      }
      profile_.buffers.push_back(std::move(buffer));
    }
    Profile::Buffer& buffer = profile_.buffers[found->second];
    buffer.last_step = std::max(buffer.last_step, k);
    const bool is_given = buffer.place == Profile::BufferKind::Constant ||
                          buffer.place == Profile::BufferKind::Input ||
                          buffer.making == Profile::Making::Back;
    const bool is_made = !is_given && (is_new || makes(step, buffer.name));
    note(is_made ? step.writes : step.reads, found->second);
  }

  std::vector<std::int64_t> shape_of(const Program::Buffer& buffer) const {
    std::vector<std::int64_t> shape;
    for (const Extent& dim : buffer.dims) shape.push_back(dim.value(model_.runner().symbols));
    return shape;
  }

  // Returns whether the step's node has a result of that name: several steps may write to one
  // buffer.
  bool makes(const Profile::Step& step, const std::string& value) const {
    const auto found = nodes_.find(value), own = nodes_.find(step.value);
    return found != nodes_.end() && own != nodes_.end() &&
           found->second.graph == own->second.graph && found->second.node == own->second.node;
  }

  void link_steps() {
    std::map<std::uint32_t, std::uint32_t> writer;      // by buffer
    std::map<std::string, std::uint32_t> named_writer;  // by value passed between micro-batches
    for (std::uint32_t k = 0; k < profile_.steps.size(); ++k) {
      Profile::Step& step = profile_.steps[k];
      std::set<std::uint32_t> after;
      if (step.kind == Profile::Kind::Copy) {
        link_copy(step, keys_[k].first == StepSamples::What::Input);
      }
      for (const std::uint32_t id : step.reads) {
        if (const auto found = writer.find(id); found != writer.end()) {
          after.insert(found->second);
        } else if (const auto named = named_writer.find(profile_.buffers[id].name);
                   named != named_writer.end()) {
          after.insert(named->second);
        }
      }
      if (step.kind == Profile::Kind::Operators) {
        if (const auto node = nodes_.find(step.value); node != nodes_.end()) {
          for (const ValueId operand : node->second.graph->node(node->second.node).operands) {
            if (!operand) continue;
            const auto named = named_writer.find(node->second.graph->value(operand).name);
            if (named != named_writer.end()) after.insert(named->second);
          }
        }
      }
      after.erase(k);
      step.after.assign(after.begin(), after.end());
      for (const std::uint32_t id : step.writes) {
        writer[id] = k;
        named_writer[profile_.buffers[id].name] = k;
      }
      if (step.kind == Profile::Kind::Operators) named_writer[step.value] = k;
    }
  }

  // Uses the port's buffer, or adds one if no kernel uses it.
  void link_copy(Profile::Step& step, bool is_input) {
    const Profile::BufferKind place =
        is_input ? Profile::BufferKind::Input : Profile::BufferKind::Output;
    std::vector<std::uint32_t>& list = is_input ? step.writes : step.reads;
    for (std::uint32_t id = 0; id < profile_.buffers.size(); ++id) {
      const Profile::Buffer& buffer = profile_.buffers[id];
      if (buffer.place == place && buffer.name == step.value && list.empty()) list.push_back(id);
    }
    if (!list.empty()) step.bytes = 2 * static_cast<double>(profile_.buffers[list.front()].bytes);
  }

  // With symbolic extents the work of a step is unknown to the program; it follows from the graph
  // and the run.
  void share_out_symbolic_work() {
    std::map<std::string, std::vector<std::uint32_t>> by_node;
    for (std::uint32_t k = 0; k < profile_.steps.size(); ++k) {
      Profile::Step& step = profile_.steps[k];
      if (step.kind != Profile::Kind::Kernel) continue;
      if (step.bytes == 0) {
        for (const auto* list : {&step.reads, &step.writes}) {
          for (const std::uint32_t id : *list)
            step.bytes += static_cast<double>(profile_.buffers[id].bytes);
        }
      }
      if (step.flops == 0 && !symbols_.empty()) by_node[step.value].push_back(k);
    }
    for (const auto& [name, steps] : by_node) {
      const auto found = nodes_.find(name);
      if (found == nodes_.end()) continue;
      const Footprint footprint = footprint_of(*found->second.graph, found->second.node);
      const auto flops =
          static_cast<double>(footprint.flops.substitute(symbols_).value().value_or(0));
      split(steps, flops, [](Profile::Step& step, double share) { step.flops = share; });
    }
  }

  void add_formulas() {
    const auto formats = documents::document_formats();
    const auto counts = [](const documents::DocumentFormat& each) {
      return each.count_work != nullptr;
    };
    const auto format = std::ranges::find_if(formats, counts);
    if (format == formats.end()) return;
    std::map<std::string, std::vector<std::uint32_t>> by_node;
    for (std::uint32_t k = 0; k < profile_.steps.size(); ++k) {
      const Profile::Step& step = profile_.steps[k];
      if (step.kind == Profile::Kind::Kernel && nodes_.contains(step.value))
        by_node[step.value].push_back(k);
    }
    for (const auto& [name, steps] : by_node) {
      const auto& [graph, id] = nodes_.at(name);
      const documents::CountedWork formula = format->count_work(*graph, id, symbols_);
      if (formula.computation > 0)
        split(steps, formula.computation,
              [](Profile::Step& step, double share) { step.computation = share; });
      split(steps, formula.memory, [](Profile::Step& step, double share) { step.memory = share; });
    }
  }

  // Distributes a node's amount over its steps in proportion to their times.
  template <class Give>
  void split(const std::vector<std::uint32_t>& steps, double amount, const Give& give) {
    double total = 0;
    for (const std::uint32_t k : steps) total += profile_.steps[k].last_seconds();
    for (const std::uint32_t k : steps) {
      const double part = steps.size() == 1 ? 1
                          : total > 0       ? profile_.steps[k].last_seconds() / total
                                            : 1.0 / static_cast<double>(steps.size());
      give(profile_.steps[k], amount * part);
    }
  }

  void add_passes() {
    if (compiled_ == nullptr) return;
    for (const driver::PassReport& report : compiled_->passes) {
      profile_.passes.push_back({report.pass,
                                 report.change,
                                 report.elapsed_ms,
                                 report.nodes_before,
                                 report.nodes_after,
                                 {}});
    }
    for (const auto& [value, entries] : compiled_->remarks.all()) {
      for (const passes::Remarks::Entry& entry : entries) {
        const auto found =
            std::find_if(profile_.passes.begin(), profile_.passes.end(),
                         [&](const Profile::PassChange& pass) { return pass.pass == entry.pass; });
        if (found != profile_.passes.end()) found->remarks.push_back({value, entry.text});
      }
    }
  }

  Profile& profile_;
  const CompiledModel& model_;
  const WatchedRun& last_;
  const StepSamples& samples_;
  const std::vector<Datum>& inputs_;
  const driver::CompileRecord* compiled_;
  std::uint64_t zero_ = 0;
  std::map<std::string, FoundNode> nodes_;
  std::map<std::string, std::vector<const codegen::Decision*>> decisions_;
  DimBindings symbols_;
  std::map<Key, std::uint32_t> index_;  // index of the profile's step
  std::vector<Key> keys_;
  std::set<std::string> arena_names_;
};

}  // namespace

void StepSamples::add(const WatchedRun& run, std::uint64_t asking) {
  std::map<Key, double> sums;
  for (const WatchedRun::Copy& copy : run.copies) {
    sums[{copy.is_input ? What::Input : What::Output, static_cast<std::uint32_t>(copy.port)}] +=
        static_cast<double>(copy.end - copy.start);
  }
  for (const StepEvent& event : run.events.steps)
    sums[{What::Step, event.step}] += static_cast<double>(
        event.end - event.start - event.inner - std::min(asking, event.end - event.start - 1));
  for (const auto& [key, ticks_taken] : sums)
    seconds_[key].push_back(ticks_taken * seconds_per_tick());
}

Profile::Spread StepSamples::spread(const Key& key) const {
  const auto found = seconds_.find(key);
  return found == seconds_.end() ? Profile::Spread{} : spread_of(found->second);
}

void fill_profile(Profile& profile, const CompiledModel& model, const WatchedRun& last,
                  const StepSamples& samples, const std::vector<Datum>& inputs,
                  const driver::CompileRecord* compiled) {
  Filler(profile, model, last, samples, inputs, compiled).run();
}

}  // namespace tenon::profile
