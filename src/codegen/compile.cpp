#include "codegen/compile.h"

#include <algorithm>
#include <map>
#include <new>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "codegen/compose.h"
#include "codegen/constant_store.h"
#include "codegen/cpu/candidates.h"
#include "codegen/cpu/schedule.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/source_writer.h"
#include "codegen/extent_of.h"
#include "codegen/general_kernels.h"
#include "codegen/guards.h"
#include "codegen/shape_checks.h"
#include "nests/index_map.h"
#include "nests/nest_builder.h"
#include "nests/node_exprs.h"
#include "nests/padding.h"
#include "nests/specialise.h"
#include "nests/tile_and_fuse.h"
#include "nests/transposed_operand.h"
#include "nests/work_shares.h"
#include "ops/analysis.h"
#include "ops/fused_groups.h"
#include "program/arena.h"

namespace tenon::codegen {
namespace {

// Whether the node only gives its operand other extents.
bool is_view(const std::vector<Expr>& exprs) {
  if (exprs.size() != 1) return false;
  const Expr* expr = &exprs.front();
  while (expr->node().kind == ExprKind::Reshape) expr = &expr->node().args[0];
  return expr->node().kind == ExprKind::Operand;
}
std::size_t viewed_operand(const Expr& view) {
  const Expr* expr = &view;
  while (expr->node().kind == ExprKind::Reshape) expr = &expr->node().args[0];
  return expr->node().operand;
}

class Compiler {
 public:
  Compiler(const Graph& graph, const CompileOptions& options) : graph_(graph), options_(options) {
    registers_ = cpu::registers_of(options.target);
  }

  void lower() {
    program_.name = graph_.name;
    program_.target = target_name(options_);
    add_inputs();
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) output_places_.try_emplace(graph_.outputs()[k], k);
    program_.checks = shape_checks(graph_, symbol_ids_);
    for (NodeId id : graph_.nodes_in_order()) add_node(id);
    refuse_if_unsupported();
    add_outputs();
    // A device's kernels are bound to their extents.
    if (!options_.device) share_general_kernels(nests_, program_);
  }

  Program finish() {
    constants_.place();
    plan();
    if (options_.device) {
      const std::vector<cuda::Kernel> kernels = device_kernels();
      if (options_.device->is_emulated) {
        const std::string source = cuda::write_emulation(kernels);
        const auto* bytes = reinterpret_cast<const std::byte*>(source.data());
        program_.code.assign(bytes, bytes + source.size());
      } else if (!kernels.empty()) {
        program_.code = cuda::compile_source(cuda::write_source(kernels), options_.device->architecture);
      }
      return std::move(program_);
    }
    std::vector<const LoopNest*> nests;
    std::vector<std::string> symbols;
    for (std::size_t k = 0; k < nests_.size(); ++k) {
      nests.push_back(&nests_[k]);
      symbols.push_back(program_.kernels[k].symbol);
    }
    program_.code = cpu::compile_nests(nests, symbols, {options_.target, false}).object;
    return std::move(program_);
  }

  std::string text() const {
    std::string text;
    for (const LoopNest& nest : nests_) text += to_string(nest) + "\n";
    for (const Program::Step& step : program_.steps) {
      text += concat("step '", step.name, "': ", program_.kernels[step.kernel].symbol);
      for (const Program::Call& call : step.tail) text += concat(", then ", program_.kernels[call.kernel].symbol);
      text += "\n";
    }
    if (options_.device) return text + cuda::write_source(device_kernels());
    std::vector<const LoopNest*> nests;
    std::vector<std::string> symbols;
    for (std::size_t k = 0; k < nests_.size(); ++k) {
      nests.push_back(&nests_[k]);
      symbols.push_back(program_.kernels[k].symbol);
    }
    const cpu::CompiledNests compiled = cpu::compile_nests(nests, symbols, {options_.target, true});
    return text + compiled.ir + "\n" + compiled.assembly;
  }

 private:
  Extent extent(const Dim& dim) const { return extent_of(dim, symbol_ids_); }
  std::vector<Extent> extents(const Dims& dims) const {
    std::vector<Extent> list;
    for (const Dim& dim : dims) list.push_back(extent(dim));
    return list;
  }

  std::uint32_t add_buffer(const std::string& name, DType dtype, const Dims& dims, Program::Place place) {
    Program::Buffer buffer;
    buffer.name = name;
    buffer.dtype = to_string(dtype);
    buffer.element_bytes = static_cast<std::uint32_t>(info(dtype).storage_bytes);
    buffer.dims = extents(dims);
    buffer.place = place;
    program_.buffers.push_back(std::move(buffer));
    return static_cast<std::uint32_t>(program_.buffers.size() - 1);
  }

  void add_inputs() {
    for (std::size_t k = 0; k < graph_.inputs().size(); ++k) {
      const Value& input = graph_.value(graph_.inputs()[k]);
      if (!input.type.is_tensor()) {
        throw Error("an input is not a tensor of known rank", ErrorKind::Unsupported)
            .at("input '", input.name, "'")
            .got(input.type);
      }
      const Dims& dims = input.type.tensor().dims;
      for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        const auto name = dims[axis].symbol_name();
        if (!name || symbol_ids_.contains(*name)) continue;
        symbol_ids_[*name] = program_.symbols.size();
        const Range range = dims[axis].range();
        program_.symbols.push_back({*name, range.lo, range.hi, static_cast<std::uint32_t>(k),
                                    static_cast<std::uint32_t>(axis)});
      }
    }
    for (std::size_t k = 0; k < graph_.inputs().size(); ++k) {
      const Value& input = graph_.value(graph_.inputs()[k]);
      const std::uint32_t id = add_buffer(input.name, input.type.tensor().dtype, input.type.tensor().dims, Program::Place::Input);
      program_.buffers[id].offset = k;
      program_.inputs.push_back(id);
      buffers_[graph_.inputs()[k]] = id;
    }
  }

  void add_node(NodeId id) {
    const Node& node = graph_.node(id);
    if (const Constant* constant = graph_.constant_of(node.results.front())) {
      const Dims dims(constant->shape().begin(), constant->shape().end());
      if (!nests::is_compilable(constant->dtype())) {
        unsupported_.push_back(concat(graph_.location(id), ": element type ", constant->dtype()));
        return;
      }
      const std::uint32_t buffer = add_buffer(graph_.value(node.results.front()).name, constant->dtype(), dims, Program::Place::Constant);
      constants_.add(buffer, *constant);
      buffers_[node.results.front()] = buffer;
      return;
    }
    try {
      for (const std::vector<ValueId>* values : {&node.operands, &node.results}) {
        for (ValueId value : *values) {
          if (value && !graph_.value(value).type.is_tensor()) {
            throw Error("its values are not tensors of known rank", ErrorKind::Unsupported);
          }
        }
      }
      const std::vector<Expr> exprs = nests::node_exprs(graph_, id);
      if (exprs.empty()) throw Error("no kernel computes this", ErrorKind::Unsupported);
      add_kernels(id, exprs);
    } catch (Error& error) {
      if (error.kind() != ErrorKind::Unsupported) {
        if (!error.has_place()) error.at(graph_.location(id));
        throw;
      }
      unsupported_.push_back(concat(graph_.location(id), ": ", error.summary()));
      for (ValueId result : node.results) {
        if (result) buffers_.emplace(result, 0);  // so that the rest can be looked at
      }
    }
  }

  void add_kernels(NodeId id, const std::vector<Expr>& exprs) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> results;
    for (ValueId result : node.results) {
      if (result) results.push_back(result);
    }
    if (is_view(exprs)) {
      buffers_[results.front()] = buffers_.at(node.operands.at(viewed_operand(exprs.front())));
      return;
    }
    const NestSequence sequence = nests::build_nests("", exprs);  // named for their node as they are used
    for (const NestSequence::Buffer& buffer : sequence.buffers) {
      if (buffer.role != NestSequence::Role::Result) continue;
      const ValueId result = results.at(buffer.index);
      const std::uint32_t made = add_buffer(graph_.value(result).name, buffer.dtype, buffer.dims, Program::Place::Arena);
      if (const auto output = output_places_.find(result); output != output_places_.end()) {
        program_.buffers[made].place = Program::Place::Output;
        program_.buffers[made].offset = output->second;
      }
      buffers_[result] = made;
    }
    // Each time the first that fits: kernels for values that come often, then those for all.
    std::vector<Guards> left = {{}};
    for (const DimBindings& values : options_.hot_values) {
      const auto numbers = symbol_numbers(values);
      if (!numbers || !depends_on(sequence, values)) continue;
      DividedGuards divided = divide(left, *numbers, program_.symbols);
      if (!divided.inside.empty()) add_steps(id, results, specialised(sequence, values), divided.inside);
      left = std::move(divided.outside);
    }
    if (!left.empty()) add_steps(id, results, sequence, left);
  }

  // The values by number of their symbol; nothing where one cannot be, or is none of the program's.
  std::optional<std::map<std::size_t, std::int64_t>> symbol_numbers(const DimBindings& values) const {
    std::map<std::size_t, std::int64_t> numbers;
    for (const auto& [name, value] : values) {
      const auto found = symbol_ids_.find(name);
      if (found == symbol_ids_.end()) return std::nullopt;
      const Program::Symbol& symbol = program_.symbols[found->second];
      if (value.constant() < symbol.lo || value.constant() > symbol.hi) return std::nullopt;
      numbers.emplace(found->second, value.constant());
    }
    return numbers;
  }

  // Of a device: those with code.
  std::vector<cuda::Kernel> device_kernels() const {
    std::vector<cuda::Kernel> kernels;
    for (std::size_t k = 0; k < nests_.size(); ++k) {
      if (program_.kernels[k].library.empty()) kernels.push_back({&nests_[k], program_.kernels[k].symbol, cuda::bind(nests_[k])});
    }
    return kernels;
  }

  // A kernel of a device with the work of its call.
  void set_device_kernel(const LoopNest& nest, const std::string& name, Program::Call& call) {
    const cuda::Binding binding = cuda::bind(nest);
    for (const Dim& dim : nest.extents) call.extents.push_back(extent(dim));
    call.work = extent(cuda::block_count(nest, binding));
    call.kernel = add_kernel(nest, name);
    program_.kernels[call.kernel].threads = binding.threads;
    program_.kernels[call.kernel].scratch_bytes = extent(cuda::scratch_per_block(nest, binding));
  }

  void set_library_kernel(const cuda::DeviceKernel& made, Program::Call& call) {
    for (const Dim& dim : made.library_extents) call.extents.push_back(extent(dim));
    const std::string description = to_string(*made.library);
    const auto [found, is_new] = kernels_.try_emplace(description, nests_.size());
    if (is_new) {
      Program::Kernel kernel;
      kernel.name = made.part.nest.name;
      kernel.library = description;
      program_.kernels.push_back(std::move(kernel));
      nests_.emplace_back();
    }
    call.kernel = static_cast<std::uint32_t>(found->second);
  }

  void add_device_steps(NodeId id, const std::vector<ValueId>& results, NestSequence sequence, const std::vector<Guards>& guards,
                        const std::vector<bool>& is_constant) {
    const Node& node = graph_.node(id);
    const Footprint footprint = footprint_of(graph_, id);
    std::vector<cuda::DeviceKernel> kernels;
    const std::vector<NestSequence::Part> parts = sequence.parts;
    std::vector<const LoopNest*> nests;
    for (const NestSequence::Part& part : parts) nests.push_back(&part.nest);
    const std::vector<double> shares = work_shares(nests);
    std::vector<double> flops;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      double left = footprint.flops.is_constant() ? shares[k] * static_cast<double>(footprint.flops.constant()) : 0;
      for (cuda::DeviceKernel& kernel : cuda::select_kernels(sequence, parts[k], is_constant, *options_.device)) {
        kernels.push_back(std::move(kernel));
        flops.push_back(left);
        left = 0;  // what follows a sum counts with it
      }
    }
    std::vector<std::uint32_t> ids;
    for (const NestSequence::Buffer& buffer : sequence.buffers) {
      switch (buffer.role) {
        case NestSequence::Role::Operand: ids.push_back(buffers_.at(node.operands.at(buffer.index))); break;
        case NestSequence::Role::Result: ids.push_back(buffers_.at(results.at(buffer.index))); break;
        default: ids.push_back(add_buffer("", buffer.dtype, buffer.dims, Program::Place::Arena)); break;
      }
    }
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const cuda::DeviceKernel& kernel = kernels[k];
      Program::Call call;
      call.candidate = kernel.candidate;
      for (const std::size_t buffer : kernel.part.buffers) call.buffers.push_back(ids[buffer]);
      for (const nests::Packing& packing : kernel.packings) {
        call.buffers[packing.buffer] = constants_.packed(call.buffers[packing.buffer], packing);
      }
      if (kernel.library) {
        set_library_kernel(kernel, call);
        for (const std::uint32_t buffer : call.buffers) constants_.note_use(buffer, false);
      } else {
        note_lookups(kernel.part.nest, call.buffers);
        set_device_kernel(kernel.part.nest, node_name(id) + kernel.part.nest.name, call);
      }
      const double bytes = bytes_of(call);
      for (const Guards& when : guards) {
        program_.steps.push_back({call, {}, graph_.value(results.front()).name, when, flops[k], bytes});
      }
    }
  }

  // What computes a node, for the values of symbols that one of the guards asks for.
  void add_steps(NodeId id, const std::vector<ValueId>& results, const NestSequence& nests_of_node,
                 const std::vector<Guards>& guards) {
    const Node& node = graph_.node(id);
    std::vector<bool> is_constant;
    for (const NestSequence::Buffer& buffer : nests_of_node.buffers) {
      is_constant.push_back(buffer.role == NestSequence::Role::Operand &&
                            program_.buffers[buffers_.at(node.operands.at(buffer.index))].place == Program::Place::Constant);
    }
    if (options_.device) {
      add_device_steps(id, results, nests_of_node, guards, is_constant);
      return;
    }
    const Footprint footprint = footprint_of(graph_, id);
    const ChosenForNode& all = chosen_for(id, nests_of_node, is_constant, footprint);
    const NestSequence& sequence = all.sequence;
    const std::vector<WinogradWeights>& derived = all.derived;
    const std::vector<ChosenKernels>& chosen = all.kernels;
    std::vector<std::uint32_t> ids;
    for (const NestSequence::Buffer& buffer : sequence.buffers) {
      switch (buffer.role) {
        case NestSequence::Role::Operand: ids.push_back(buffers_.at(node.operands.at(buffer.index))); break;
        case NestSequence::Role::Result: ids.push_back(buffers_.at(results.at(buffer.index))); break;
        case NestSequence::Role::Derived: {
          const WinogradWeights& weights = derived.at(buffer.index);
          ids.push_back(constants_.transformed(ids[weights.source], weights));
          break;
        }
        case NestSequence::Role::Temporary:
          // Those that a nest keeps to itself are never asked for.
          ids.push_back(add_buffer("", buffer.dtype, buffer.dims, Program::Place::Arena));
          break;
      }
    }
    std::vector<const LoopNest*> nests;
    for (const ChosenKernels& kernels : chosen) {
      for (const auto& [version, made] : kernels.versions) {
        for (const MadeKernel& kernel : made) nests.push_back(&kernel.part.nest);
      }
    }
    const std::vector<double> shares = work_shares(nests);
    std::size_t count = 0;
    std::vector<std::size_t> last_steps;  // of each version of what was made last
    for (const ChosenKernels& kernels : chosen) {
      Decision decision = kernels.decision;
      decision.node = id;
      decision.name = node_name(id) + kernels.suffix;
      decision.first_step = program_.steps.size();
      if (!decision.is_tail) last_steps.clear();
      for (const auto& [version, made] : kernels.versions) {
        for (const MadeKernel& kernel : made) {
          Program::Call call;
          call.candidate = decision.candidates[version.candidate].name;
          for (std::size_t buffer : kernel.part.buffers) call.buffers.push_back(ids[buffer]);
          use_packings(kernel, call.buffers);
          note_lookups(kernel.part.nest, call.buffers);
          for (const Dim& dim : kernel.part.nest.extents) call.extents.push_back(extent(dim));
          call.work = extent(work_items(kernel.part.nest));
          call.kernel = add_kernel(kernel.part.nest, node_name(id) + kernel.part.nest.name);
          const double share = shares[count++];
          const double flops =
              footprint.flops.is_constant() ? share * static_cast<double>(footprint.flops.constant()) : 0;
          const Dim all_bytes = footprint.bytes_read + footprint.bytes_written;
          const double bytes = nests.size() > 1 || !all_bytes.is_constant() ? bytes_of(call)
                                                                            : static_cast<double>(all_bytes.constant());
          if (decision.is_tail) {
            for (const std::size_t last : last_steps) {
              Program::Step& step = program_.steps[last];
              step.flops += flops;
              if (step.bytes > 0) step.bytes += bytes;
              step.tail.push_back(call);
            }
            continue;
          }
          const bool is_last = &kernel == &made.back();
          for (Guards when : guards) {
            if (!version.symbol.empty()) {
              when.push_back({static_cast<std::uint32_t>(symbol_ids_.at(version.symbol)), version.lo, version.hi});
            }
            if (is_last) last_steps.push_back(program_.steps.size());
            program_.steps.push_back({call, {}, graph_.value(results.front()).name, std::move(when), flops, bytes});
          }
        }
      }
      decision.step_count = program_.steps.size() - decision.first_step;
      if (options_.decisions != nullptr) options_.decisions->push_back(std::move(decision));
    }
  }

  // What a call's buffers hold; 0 where symbols decide.
  double bytes_of(const Program::Call& call) const {
    double bytes = 0;
    for (const std::uint32_t id : call.buffers) {
      double size = program_.buffers[id].element_bytes;
      for (const Extent& dim : program_.buffers[id].dims) {
        if (!dim.is_number()) return 0;
        size *= static_cast<double>(dim.number());
      }
      bytes += size;
    }
    return bytes;
  }

  // Puts nests that hand each other their results together. What Winograd's algorithm computes stays
  // apart, and operands that are read past their edges get room around them before.
  void chain(NestSequence& sequence, const std::vector<bool>& is_constant) const {
    if (sequence.parts.size() < 2) return;
    NestSequence chained = sequence;
    chained.parts.clear();
    for (const NestSequence::Part& part : sequence.parts) {
      const std::vector<Candidate> candidates =
          cpu::candidates_for({sequence, part, is_constant, options_.allow_winograd, registers_});
      if (candidates[cheapest(candidates)].is_winograd) {
        chained.parts.push_back(part);
        chained.parts.back().is_scheduled = true;  // not to be touched
        continue;
      }
      for (NestSequence::Part& made : split_padding(chained, part, is_constant)) chained.parts.push_back(std::move(made));
    }
    const std::size_t count = chained.parts.size();
    tile_and_fuse(chained);
    if (chained.parts.size() == count) return;
    for (NestSequence::Part& part : chained.parts) part.is_scheduled = false;
    sequence = std::move(chained);
  }

  struct ChosenKernels {
    std::string suffix;  // of its name, behind the node's
    Decision decision;
    std::vector<std::pair<Version, std::vector<MadeKernel>>> versions;
  };
  // A node goes by its first result.
  const std::string& node_name(NodeId id) const {
    const std::vector<ValueId>& results = graph_.node(id).results;
    return graph_.value(*std::find_if(results.begin(), results.end(), [](ValueId result) { return bool(result); })).name;
  }

  struct ChosenForNode {
    NestSequence sequence;
    std::vector<WinogradWeights> derived;
    std::vector<ChosenKernels> kernels;
  };
  // Networks repeat themselves: what was chosen for the same nests of an earlier node is taken again.
  const ChosenForNode& chosen_for(NodeId id, const NestSequence& sequence, const std::vector<bool>& is_constant,
                                  const Footprint& footprint) {
    std::string text;
    for (const NestSequence::Buffer& buffer : sequence.buffers) {
      text += concat(static_cast<int>(buffer.role), " ", buffer.index, " ", buffer.dtype, buffer.dims, "\n");
    }
    for (const bool is : is_constant) text += is ? 'c' : 'v';
    for (const NestSequence::Part& part : sequence.parts) {
      for (const std::size_t buffer : part.buffers) text += concat(" ", buffer);
      const std::string nest = to_string(part.nest);
      text.append(nest, nest.find('('));  // all but its name
    }
    if (const auto known = chosen_.find(text); known != chosen_.end()) return known->second;
    ChosenForNode made{sequence, {}, {}};
    transpose_operands(made.sequence, is_constant);
    chain(made.sequence, is_constant);
    made.kernels = choose_kernels(id, made.sequence, is_constant, made.derived, footprint);
    return chosen_.emplace(std::move(text), std::move(made)).first->second;
  }

  std::vector<ChosenKernels> choose_kernels(NodeId id, NestSequence& sequence, const std::vector<bool>& is_constant,
                                            std::vector<WinogradWeights>& derived, const Footprint& footprint) {
    std::vector<const LoopNest*> nests;
    for (const NestSequence::Part& part : sequence.parts) nests.push_back(&part.nest);
    const std::vector<double> shares = work_shares(nests);
    std::vector<ChosenKernels> chosen;
    for (const NestSequence::Part& part : sequence.parts) {
      const KernelWork work{sequence, part, is_constant, options_.allow_winograd, registers_};
      const std::vector<Candidate> candidates = cpu::candidates_for(work);
      ChosenKernels& made = chosen.emplace_back();
      Decision& decision = made.decision;
      decision.is_tail = chosen.size() > 1 && is_little_work(part.nest);
      decision.node = id;
      made.suffix = part.nest.name;
      decision.name = node_name(id) + made.suffix;
      for (const Candidate& candidate : candidates) decision.candidates.push_back({candidate.name, candidate.verdict});
      if (options_.choose || options_.decisions != nullptr) {
        decision.work = canonical_text(work);
        decision.symbols = symbols_of(part.nest);
        if (footprint.flops.is_constant()) {
          decision.flops = shares[chosen.size() - 1] * static_cast<double>(footprint.flops.constant());
        }
      }
      auto selected = options_.choose ? options_.choose(decision) : std::nullopt;
      decision.selection = selected ? std::move(*selected) : Selection{{{cheapest(candidates)}}, "least estimated cost"};
      if (decision.is_tail) {
        decision.selection.versions.resize(1);  // no symbol decides its extents
        decision.selection.why += "; right after what comes before, by one thread: so little is not shared out";
      }
      for (const Version& version : decision.selection.versions) {
        // Versions by the same candidate share what it makes.
        const auto same = std::find_if(made.versions.begin(), made.versions.end(), [&](const auto& other) {
          return other.first.candidate == version.candidate;
        });
        std::vector<MadeKernel> nests_made =
            same != made.versions.end() ? same->second : candidates[version.candidate].make(sequence, derived);
        made.versions.emplace_back(version, std::move(nests_made));
      }
    }
    return chosen;
  }

  // What the nest wants packed is another constant in `arguments`.
  void use_packings(const MadeKernel& kernel, std::vector<std::uint32_t>& arguments) {
    std::vector<std::size_t> argument_of;
    std::size_t given = 0;
    for (const NestBuffer& buffer : kernel.part.nest.buffers) {
      argument_of.push_back(given);
      given += buffer.storage != Storage::Scratch;
    }
    for (const Packing& packing : kernel.packings) {
      std::uint32_t& argument = arguments[argument_of[packing.buffer]];
      argument = constants_.packed(argument, packing);
    }
  }

  void note_lookups(const LoopNest& nest, const std::vector<std::uint32_t>& arguments) {
    const std::vector<bool> is_looked_up = looked_up(nest);
    std::size_t given = 0;
    for (std::size_t k = 0; k < nest.buffers.size(); ++k) {
      if (nest.buffers[k].storage == Storage::Scratch) continue;
      constants_.note_use(arguments[given++], is_looked_up[k]);
    }
  }

  // Nests that read the same but for their names are one kernel.
  std::uint32_t add_kernel(LoopNest nest, const std::string& name) {
    nest.name.clear();
    const auto [found, is_new] = kernels_.try_emplace(to_string(nest), nests_.size());
    if (is_new) {
      Program::Kernel kernel;
      kernel.name = name;
      kernel.symbol = concat("k", nests_.size());
      kernel.scratch_bytes = extent(scratch_bytes(nest));
      kernel.checks = {"an index lies outside its tensor", "integer division by zero"};  // by Check
      program_.kernels.push_back(std::move(kernel));
      nest.name = concat("k", nests_.size());
      nests_.push_back(std::move(nest));
    }
    return static_cast<std::uint32_t>(found->second);
  }

  void add_outputs() {
    std::vector<bool> is_taken(program_.buffers.size(), false);
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
      const ValueId value = graph_.outputs()[k];
      const std::uint32_t made = buffers_.at(value);
      const Program::Buffer& buffer = program_.buffers[made];
      if (buffer.place == Program::Place::Output && buffer.offset == k && made < is_taken.size() && !is_taken[made]) {
        is_taken[made] = true;
        program_.outputs.push_back(made);
        continue;
      }
      // An input, a constant, a view or the same value again: the caller gets a copy.
      const TensorType& type = graph_.value(value).type.tensor();
      const std::uint32_t copy = add_buffer(graph_.value(value).name, type.dtype, type.dims, Program::Place::Output);
      program_.buffers[copy].offset = k;
      program_.outputs.push_back(copy);
      NestSequence sequence = nests::build_nests("copy", {operand_expr(0, {type.dtype, {product(type.dims)}, {}})});
      if (sequence.parts.empty()) continue;  // no elements
      LoopNest& nest = sequence.parts.front().nest;
      Program::Step step;
      step.name = graph_.value(value).name;
      for (std::size_t id : sequence.parts.front().buffers) {
        step.buffers.push_back(sequence.buffers[id].role == NestSequence::Role::Operand ? made : copy);
      }
      note_lookups(nest, step.buffers);
      if (options_.device) {
        step.candidate = "loops";
        set_device_kernel(nest, "copy", step);
      } else {
        cpu::schedule(nest);
        for (const Dim& dim : nest.extents) step.extents.push_back(extent(dim));
        step.work = extent(work_items(nest));
        step.kernel = add_kernel(std::move(nest), "copy");
      }
      program_.steps.push_back(std::move(step));
    }
  }

  void refuse_if_unsupported() const {
    if (unsupported_.empty()) return;
    const std::size_t shown = std::min<std::size_t>(unsupported_.size(), 20);
    std::string list = join({unsupported_.data(), shown}, "\n            ");
    if (shown < unsupported_.size()) list += concat("\n            and ", unsupported_.size() - shown, " more");
    throw Error("the model has nodes that are not compiled", ErrorKind::Unsupported).got(list);
  }

  void plan() {
    std::vector<std::uint32_t> first(program_.buffers.size(), UINT32_MAX), last(program_.buffers.size(), 0);
    for (std::size_t k = 0; k < program_.steps.size(); ++k) {
      program_.steps[k].for_each_call([&](const Program::Call& call) {
        for (const std::uint32_t buffer : call.buffers) {
          first[buffer] = std::min(first[buffer], static_cast<std::uint32_t>(k));
          last[buffer] = static_cast<std::uint32_t>(k);
        }
      });
    }
    std::vector<ArenaRequest> requests;
    std::vector<std::size_t> requesters;
    bool is_fixed = true;
    for (std::size_t k = 0; k < program_.buffers.size(); ++k) {
      Program::Buffer& buffer = program_.buffers[k];
      if (buffer.place != Program::Place::Arena) continue;
      buffer.last_step = last[k];
      buffer.first_step = std::min(first[k], last[k]);
      if (first[k] == UINT32_MAX) buffer.dims = {0};  // a nest keeps it to itself
      std::uint64_t bytes = buffer.element_bytes;
      for (const Extent& dim : buffer.dims) {
        if (!dim.is_number()) {
          is_fixed = false;
          bytes = 0;
        } else {
          bytes *= static_cast<std::uint64_t>(dim.number());
        }
      }
      requests.push_back({bytes, buffer.first_step, buffer.last_step});
      requesters.push_back(k);
    }
    program_.is_arena_planned = is_fixed;
    if (!is_fixed) return;
    const ArenaPlan made = plan_arena(requests);
    for (std::size_t k = 0; k < requesters.size(); ++k) program_.buffers[requesters[k]].offset = made.offsets[k];
    program_.arena_bytes = made.bytes;
  }

  const Graph& graph_;
  const CompileOptions& options_;
  cpu::Registers registers_;
  Program program_;
  std::map<std::string, std::size_t> symbol_ids_;
  std::unordered_map<ValueId, std::uint32_t> buffers_;
  std::unordered_map<ValueId, std::uint64_t> output_places_;  // the first of each
  ConstantStore constants_{program_};
  std::vector<LoopNest> nests_;
  std::unordered_map<std::string, std::size_t> kernels_;
  std::unordered_map<std::string, ChosenForNode> chosen_;
  std::vector<std::string> unsupported_;
};

}  // namespace

std::string target_name(const CompileOptions& options) {
  return options.device ? concat("cuda:", options.device->architecture) : cpu::target_level(options.target);
}

Program compile_kernels(const Graph& graph, const CompileOptions& options) {
  try {
    Compiler compiler(graph, options);
    compiler.lower();
    return compiler.finish();
  } catch (const std::bad_alloc&) {
    throw Error("no memory to compile the model", ErrorKind::OutOfMemory).at("graph '", graph.name, "'");
  }
}

std::vector<Decision> decide(const Graph& graph, const CompileOptions& options) {
  std::vector<Decision> decisions;
  CompileOptions settings = options;
  settings.decisions = &decisions;
  Compiler(graph, settings).lower();
  return decisions;
}

std::string print_kernels(const Graph& graph, const CompileOptions& options) {
  Compiler compiler(graph, options);
  compiler.lower();
  return compiler.text();
}

}  // namespace tenon::codegen
