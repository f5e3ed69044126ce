#include "codegen/processor_tasks.h"

#include "base/error.h"
#include "base/text.h"
#include "expr/node_label.h"
#include "nests/index_map.h"
#include "nests/verify.h"
#include "nests/work_shares.h"

#include <algorithm>
#include <optional>

namespace tenon::codegen {

using MadeVersion = std::pair<Version, std::vector<MadeKernel>>;
struct ChosenKernels {
  std::string suffix;  // Appended to the node's name.
  Decision decision;
  std::vector<MadeVersion> versions;
};
struct ChosenForNode {
  NestSequence sequence;
  std::vector<nests::WinogradWeights> derived;
  std::vector<ChosenKernels> kernels;
};

namespace {

class ProcessorTasks : public TaskWriter {
 public:
  using TaskWriter::TaskWriter;

  void add_tasks(NodeId id, const std::vector<ValueId>& results, NodeNests& prepared,
                 const std::vector<Guards>& guards) override {
    const Node& node = graph_.node(id);
    if (!prepared.chosen) choose_for(id, constants_among(node, prepared.sequence), prepared);
    const ChosenForNode& all = *prepared.chosen;
    const NestSequence& sequence = all.sequence;
    const std::vector<nests::WinogradWeights>& derived = all.derived;
    const std::vector<ChosenKernels>& chosen = all.kernels;
    const std::vector<std::uint32_t> ids = buffer_ids(node, results, sequence, derived);
    if (prepared.calls.empty()) prepare_calls(id, ids, prepared);
    std::size_t count = 0;
    const TaskList::Task unfilled = task_of(id, results);
    for (const ChosenKernels& kernels : chosen) {
      Decision decision = kernels.decision;
      decision.node = id.index() < original_bound_ ? id : NodeId{};
      TaskList::Task task = unfilled;
      decision.name = task.name + part_label(kernels.suffix);
      decision.first_step = shared_.step_count;
      for (const MadeVersion* made : wanted_versions(kernels)) {
        const Version& version = made->first;
        TaskList::Alternative alternative;
        alternative.candidate = decision.candidates[version.candidate].name;
        for (const MadeKernel& kernel : made->second) {
          TaskList::Call call = prepared.calls[count++];
          set_buffers(call, kernel, ids);
          note_lookups(call);
          alternative.calls.push_back(std::move(call));
        }
        for (const Guards& guard : guards) {
          alternative.when = guard;
          if (!version.symbol.empty()) {
            if (const auto symbol = guard_symbol(version)) {
              alternative.when.push_back(
                  {static_cast<std::uint32_t>(*symbol), version.lo, version.hi});
            }
          }
          task.alternatives.push_back(alternative);
          shared_.step_count += alternative.calls.size();
        }
      }
      decision.step_count = shared_.step_count - decision.first_step;
      derive_uses(list_, task);
      list_.tasks.push_back(std::move(task));
      if (options_.keeps_record) shared_.decisions.push_back(std::move(decision));
    }
  }

  void add_copy(LoopNest nest, TaskList::Call call, TaskList::Task task) override {
    note_lookups(nest, call.buffers);
    options_.target->schedule(nest);
    set_numbers(call, nest);
    call.kernel = add_kernel(std::move(nest), "copy");
    task.alternatives.push_back({"", {}, {std::move(call)}});
    derive_uses(list_, task);
    list_.tasks.push_back(std::move(task));
  }

 private:
  void set_buffers(TaskList::Call& call, const MadeKernel& kernel,
                   const std::vector<std::uint32_t>& ids) {
    for (std::size_t buffer : kernel.part.buffers) call.buffers.push_back(ids[buffer]);
    use_packings(kernel, call.buffers);
  }

  // Builds the parts that all calls for equal nodes share; `ids` are the buffers of this node.
  void prepare_calls(NodeId id, const std::vector<std::uint32_t>& ids, NodeNests& prepared) {
    std::vector<const MadeKernel*> all;
    std::vector<const LoopNest*> nests;
    for (const ChosenKernels& kernels : prepared.chosen->kernels) {
      for (const MadeVersion* made : wanted_versions(kernels)) {
        for (const MadeKernel& kernel : made->second) {
          all.push_back(&kernel);
          nests.push_back(&kernel.part.nest);
        }
      }
    }
    const std::vector<double> shares = work_shares(nests);
    const Footprint& footprint = prepared.footprint;
    const Dim all_bytes = footprint.bytes_read + footprint.bytes_written;
    const double flops =
        footprint.flops.is_constant() ? static_cast<double>(footprint.flops.constant()) : 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      TaskList::Call call;
      set_buffers(call, *all[k], ids);
      set_numbers(call, *nests[k]);
      call.kernel = add_kernel(*nests[k], kernel_name(id, nests[k]->name));
      call.flops = shares[k] * flops;
      call.bytes = nests.size() > 1 || !all_bytes.is_constant()
                       ? bytes_of(call)
                       : static_cast<double>(all_bytes.constant());
      call.buffers.clear();
      prepared.calls.push_back(std::move(call));
    }
  }

  // If the list lacks the symbol that versions are guarded by, a single version is used.
  std::vector<const MadeVersion*> wanted_versions(const ChosenKernels& kernels) {
    std::vector<const MadeVersion*> wanted;
    for (const MadeVersion& made : kernels.versions) {
      const bool is_for_all = made.first.symbol.empty() || guard_symbol(made.first);
      if (is_for_all || wanted.empty()) wanted.push_back(&made);
    }
    return wanted;
  }

  // Networks repeat blocks: equal nests of an earlier node reuse its choice.
  void choose_for(NodeId id, const std::vector<bool>& is_constant, NodeNests& prepared) {
    const NestSequence& sequence = prepared.sequence;
    std::string text;
    for (const NestSequence::Buffer& buffer : sequence.buffers) {
      text += concat(static_cast<int>(buffer.role), " ", buffer.index, " ", buffer.dtype,
                     buffer.dims, "\n");
    }
    for (const bool is : is_constant) text += is ? 'c' : 'v';
    for (const NestSequence::NestCall& part : sequence.parts) {
      for (const std::size_t buffer : part.buffers) text += concat(" ", buffer);
      const std::string nest = to_string(part.nest);
      text.append(nest, nest.find('('));  // Everything after the name.
    }
    if (const auto known = chosen_.find(text); known != chosen_.end()) {
      prepared.chosen = &known->second;
      return;
    }
    ChosenForNode made{sequence, {}, {}};
    const auto choose = [&] {
      made.kernels =
          choose_kernels(id, made.sequence, is_constant, made.derived, prepared.footprint);
    };
    try {
      nests::NestWork work{made.sequence, is_constant, {}, node_label(graph_, id)};
      nests::run_passes(options_.target->nest_passes(options_.allow_winograd), work,
                        options_.nest_passes);
      made.sequence = std::move(work.sequence);
      choose();
    } catch (InternalError& error) {
      error.locate(graph_.location(id));
      if (!options_.on_fallback) throw;
      made = {sequence, {}, {}};
      choose();
      options_.on_fallback(error, "the nests that define the node take its place");
    }
    prepared.chosen = &chosen_.emplace(std::move(text), std::move(made)).first->second;
  }

  // Makes the nests of a version's candidate. If they are unsound, the cheapest other candidate
  // replaces it in the version.
  std::vector<MadeKernel> make_nests(NodeId id, Version& version, Decision& decision,
                                     std::vector<Candidate>& candidates, NestSequence& sequence,
                                     std::vector<nests::WinogradWeights>& derived) {
    const auto buffers = static_cast<std::ptrdiff_t>(sequence.buffers.size()),
               weights = static_cast<std::ptrdiff_t>(derived.size());
    std::optional<InternalError> failure;
    for (;;) {
      const std::size_t k = version.candidate;
      try {
        std::vector<MadeKernel> made = candidates[k].make(sequence, derived);
        for (const MadeKernel& kernel : made) nests::verify(kernel.part.nest);
        if (failure) {
          options_.on_fallback(*failure,
                               concat("the candidate '", candidates[k].name, "' takes its place"));
        }
        return made;
      } catch (InternalError& error) {
        error.locate(concat("candidate '", candidates[k].name, "' of ", graph_.location(id)));
        candidates[k].verdict = decision.candidates[k].verdict = no(error.what());
        const bool has_other = std::ranges::any_of(
            candidates, [](const Candidate& other) { return other.verdict.accepts; });
        if (!options_.on_fallback || !has_other) throw;
        if (!failure) failure.emplace(error);
        version.candidate = cheapest(candidates);
        sequence.buffers.erase(sequence.buffers.begin() + buffers, sequence.buffers.end());
        derived.erase(derived.begin() + weights, derived.end());
      }
    }
  }

  std::vector<ChosenKernels> choose_kernels(NodeId id, NestSequence& sequence,
                                            const std::vector<bool>& is_constant,
                                            std::vector<nests::WinogradWeights>& derived,
                                            const Footprint& footprint) {
    std::vector<const LoopNest*> nests;
    for (const NestSequence::NestCall& part : sequence.parts) nests.push_back(&part.nest);
    const std::vector<double> shares = work_shares(nests);
    const std::string label = node_label(graph_, id);
    std::vector<ChosenKernels> chosen;
    for (const NestSequence::NestCall& part : sequence.parts) {
      const KernelWork work{
          sequence, part, is_constant, options_.allow_winograd, &options_.nest_passes, label};
      std::vector<Candidate> candidates = options_.target->candidates(work);
      ChosenKernels& made = chosen.emplace_back();
      Decision& decision = made.decision;
      decision.node = id;
      made.suffix = part.nest.name;
      decision.name = label + part_label(made.suffix);
      for (const Candidate& candidate : candidates)
        decision.candidates.push_back({candidate.name, candidate.verdict});
      if (options_.choose || options_.keeps_record) {
        decision.work = canonical_text(work);
        decision.symbols = symbols_of(part.nest);
        if (footprint.flops.is_constant()) {
          decision.flops =
              shares[chosen.size() - 1] * static_cast<double>(footprint.flops.constant());
        }
      }
      auto selected = options_.choose ? options_.choose(decision) : std::nullopt;
      decision.selection = selected ? std::move(*selected)
                                    : Selection{{{cheapest(candidates)}}, "least estimated cost"};
      for (Version& version : decision.selection.versions) {
        if (!candidates[version.candidate].verdict.accepts)
          version.candidate = cheapest(candidates);
        // Versions with the same candidate share its nests.
        const auto same = std::find_if(
            made.versions.begin(), made.versions.end(),
            [&](const auto& other) { return other.first.candidate == version.candidate; });
        std::vector<MadeKernel> nests_made =
            same != made.versions.end()
                ? same->second
                : make_nests(id, version, decision, candidates, sequence, derived);
        made.versions.emplace_back(version, std::move(nests_made));
      }
    }
    return chosen;
  }

  // Replaces arguments by packed constants.
  void use_packings(const MadeKernel& kernel, std::vector<std::uint32_t>& arguments) {
    std::vector<std::size_t> argument_of;
    std::size_t given = 0;
    for (const NestBuffer& buffer : kernel.part.nest.buffers) {
      argument_of.push_back(given);
      given += buffer.storage != StorageClass::Scratch;
    }
    for (const nests::Packing& packing : kernel.packings) {
      std::uint32_t& argument = arguments[argument_of[packing.buffer]];
      const auto [known, is_new] = packed_.try_emplace({&packing, argument}, 0);
      if (is_new) known->second = form_of(argument, packing);
      argument = known->second;
    }
  }

  std::unordered_map<std::string, ChosenForNode> chosen_;  // By the text of the nests.
  std::map<std::pair<const nests::Packing*, std::uint32_t>, std::uint32_t>
      packed_;  // Keyed by packing and constant.
};

}  // namespace

std::unique_ptr<TaskWriter> processor_tasks(const TaskContext& context) {
  return std::make_unique<ProcessorTasks>(context);
}

}  // namespace tenon::codegen
