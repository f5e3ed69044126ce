#include "codegen/packed_tables.h"

#include "base/error.h"
#include "nests/affine.h"
#include "nests/index_map.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace tenon::codegen {
namespace {

using nests::LoopNest;
using nests::NestBuffer;
using nests::Packing;
using nests::Scalar;
using nests::ScalarKind;
using nests::ScalarNode;
using nests::StorageClass;

// One mixed-radix digit of an axis position: position / step % extent.
struct Digit {
  std::size_t axis = 0;
  std::int64_t step = 1, extent = 1;
  bool is_first = false;  // The most significant digit of its axis, which needs no remainder.
};
struct Unpacked {
  std::vector<Digit> digits;  // By loop of the packing.
  // By axis: the number of positions that its digits represent.
  std::vector<std::int64_t> capacity;
};

// Inverts a packing; no value if it duplicates or drops elements.
std::optional<Unpacked> unpacked(const Packing& packing) {
  Unpacked found;
  found.digits.resize(packing.loops.size());
  std::vector<bool> is_found(packing.loops.size(), false);
  for (std::size_t axis = 0; axis < packing.coordinates.size(); ++axis) {
    const auto affine = nests::affine_of(packing.coordinates[axis]);
    if (!affine || affine->start != 0 || !packing.source_dims[axis].is_constant())
      return std::nullopt;
    std::vector<std::size_t> loops;  // Loops over the axis, finest first.
    for (std::size_t k = 0; k < packing.loops.size(); ++k) {
      if (!affine->steps.contains(packing.loops[k])) continue;
      if (is_found[k]) return std::nullopt;
      is_found[k] = true;
      loops.push_back(k);
    }
    const auto step_of = [&](std::size_t k) { return affine->steps.at(packing.loops[k]); };
    std::ranges::sort(loops, {}, step_of);
    std::int64_t capacity = 1;
    for (const std::size_t k : loops) {
      if (step_of(k) != capacity) return std::nullopt;
      found.digits[k] = {axis, capacity, packing.extents[k], k == loops.back()};
      capacity *= packing.extents[k];
    }
    if (capacity < packing.source_dims[axis].constant()) return std::nullopt;
    found.capacity.push_back(capacity);
  }
  for (std::size_t k = 0; k < is_found.size(); ++k) {
    if (!is_found[k] && packing.extents[k] != 1) return std::nullopt;
    if (!is_found[k]) found.digits[k].extent = 0;  // Constant 0.
  }
  // Elements beyond the limit are not packed.
  const Digit &front = found.digits.front(), &back = found.digits.back();
  const bool counts_one_axis =
      front.axis == back.axis && back.step == 1 && front.step == back.extent;
  const std::int64_t written = counts_one_axis ? packing.limit : 0;
  const bool is_whole = packing.limit >= packing.extents.front() * packing.extents.back();
  if (!is_whole && written < packing.source_dims[front.axis].constant()) return std::nullopt;
  return found;
}

// Rewrites a load for the packed form. Out-of-range coordinates stay out of range on every axis.
Scalar packed_load(const ScalarNode& load, const Packing& packing, const Unpacked& places) {
  ScalarNode made = load;
  made.view = Dims(packing.extents.begin(), packing.extents.end());
  made.args.clear();
  for (const Digit& digit : places.digits) {
    if (digit.extent == 0) {
      made.args.push_back(nests::integer_scalar(0));
      continue;
    }
    const Scalar& at = load.args[digit.axis];
    const std::int64_t extent = packing.source_dims[digit.axis].constant();
    const auto integer = [](BinaryOp op, const Scalar& a, std::int64_t b) {
      return nests::binary_scalar(op, DType::I64, a, nests::integer_scalar(b));
    };
    Scalar place = digit.step == 1 ? at : integer(BinaryOp::FloorDivide, at, digit.step);
    if (!digit.is_first) {
      place = integer(BinaryOp::Modulo, place, digit.extent);
    } else if (places.capacity[digit.axis] != extent) {
      const Scalar is_inside =
          nests::binary_scalar(BinaryOp::Less, DType::Bool, at, nests::integer_scalar(extent));
      place = nests::select_scalar(is_inside, place, nests::integer_scalar(-1));
    }
    made.args.push_back(std::move(place));
  }
  return Scalar(std::make_shared<const ScalarNode>(std::move(made)));
}

// Returns the nest's buffer for an argument of a call.
std::size_t buffer_of(const LoopNest& nest, std::size_t argument) {
  std::size_t k = 0;
  for (;; ++k) {
    if (nest.buffers[k].storage == StorageClass::Scratch) continue;
    if (argument-- == 0) return k;
  }
}

// One use of the table by a call.
struct TableUse {
  TaskList::Call* call = nullptr;
  std::size_t argument = 0;
};

class PackedTable {
 public:
  PackedTable(TaskList& list, std::uint32_t plain) : list_(list), plain_(plain) {}

  // Rewrites all uses to the packed form, or leaves everything unchanged.
  void change(const TargetFacts& facts) {
    if (!find_uses() || uses_.empty()) return;
    const auto form = find_form();
    if (!form) return;
    const auto& packing = std::get<Packing>(list_.buffers[*form].form->how);
    const auto places = unpacked(packing);
    if (!places) return;
    for (const TableUse& use : uses_) {
      if (!may_change(use, packing, facts)) return;
    }
    for (const TableUse& use : uses_) {
      use.call->kernel = packed_kernel(use, packing, *places);
      use.call->buffers[use.argument] = *form;
    }
    for (TaskList::Task& task : list_.tasks) {
      if (std::ranges::find(task.reads, plain_) != task.reads.end()) derive_uses(list_, task);
    }
  }

 private:
  // Returns false if anything other than a kernel reads the table.
  bool find_uses() {
    if (std::ranges::find(list_.outputs, plain_) != list_.outputs.end()) return false;
    for (const TaskList::Buffer& buffer : list_.buffers) {
      if (buffer.view_of == plain_) return false;
    }
    for (TaskList::Task& task : list_.tasks) {
      if (std::ranges::find(task.reads, plain_) == task.reads.end()) continue;
      if (task.kind != TaskList::Task::Kind::Compute) return false;
      for (TaskList::Alternative& alternative : task.alternatives) {
        for (TaskList::Call& call : alternative.calls) {
          for (std::size_t k = 0; k < call.buffers.size(); ++k) {
            if (call.buffers[k] == plain_) uses_.push_back({&call, k});
          }
        }
      }
    }
    return true;
  }

  std::optional<std::uint32_t> find_form() const {
    for (const TaskList::Task& task : list_.tasks) {
      for (const std::uint32_t id : task.reads) {
        const auto& form = list_.buffers[id].form;
        if (form && form->source == plain_ && std::holds_alternative<Packing>(form->how)) return id;
      }
    }
    return std::nullopt;
  }

  bool may_change(const TableUse& use, const Packing& packing, const TargetFacts& facts) const {
    const TaskList::Kernel& kernel = list_.kernels[use.call->kernel];
    if (!kernel.library.empty()) return false;
    const std::size_t buffer = buffer_of(kernel.nest, use.argument);
    bool is_looked_up = true;
    nests::for_each_load(kernel.nest.body, [&](const Scalar& load) {
      if (load->id != buffer) return;
      is_looked_up &= load->bounds == nests::Bounds::Checked && load->view == packing.source_dims;
    });
    if (!is_looked_up) return false;
    // In packed form the elements of a row lie in separate cache lines. The number of elements read
    // is about the number written.
    const Dim table_bytes =
        product(packing.source_dims) *
        static_cast<std::int64_t>(info(list_.buffers[plain_].dtype).storage_bytes);
    Dim written = 0;
    for (std::size_t k = 0; k < use.call->buffers.size(); ++k) {
      if (kernel.nest.buffers[buffer_of(kernel.nest, k)].storage != StorageClass::Result) continue;
      const Dim count = product(list_.buffers[use.call->buffers[k]].dims);
      if (!count.is_constant()) return true;
      if (count.constant() > written.constant()) written = count;
    }
    return written.constant() <=
           table_bytes.constant() / static_cast<std::int64_t>(facts.line_bytes);
  }

  // Returns the rewritten kernel of a use. Other calls may keep the original kernel for unpacked
  // tables.
  std::uint32_t packed_kernel(const TableUse& use, const Packing& packing, const Unpacked& places) {
    const std::uint32_t kernel = use.call->kernel;
    const auto [known, is_new] = made_.try_emplace({kernel, use.argument}, kernel);
    if (!is_new) return known->second;
    std::size_t calls = 0;
    for (const TaskList::Task& task : list_.tasks) {
      for (const TaskList::Alternative& alternative : task.alternatives)
        calls += static_cast<std::size_t>(
            std::ranges::count(alternative.calls, kernel, &TaskList::Call::kernel));
    }
    const auto alike =
        static_cast<std::size_t>(std::ranges::count_if(uses_, [&](const TableUse& other) {
          return other.call->kernel == kernel && other.argument == use.argument;
        }));
    if (calls > alike) {
      TaskList::Kernel copy = list_.kernels[kernel];
      copy.nest.name = concat("k", list_.kernels.size());
      known->second = static_cast<std::uint32_t>(list_.kernels.size());
      list_.kernels.push_back(std::move(copy));
    }
    LoopNest& nest = list_.kernels[known->second].nest;
    const std::size_t buffer = buffer_of(nest, use.argument);
    nests::ScalarRewriter([&](ScalarNode node) {
      if (node.kind == ScalarKind::Load && node.id == buffer)
        return packed_load(node, packing, places);
      return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    }).apply(nest.body);
    nest.buffers[buffer].dims = Dims(packing.extents.begin(), packing.extents.end());
    nest.buffers[buffer].ahead = 0;
    return known->second;
  }

  TaskList& list_;
  std::uint32_t plain_;
  std::vector<TableUse> uses_;
  std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> made_;  // By kernel and argument.
};

}  // namespace

void use_packed_tables(TaskList& list, const TargetFacts& facts) {
  std::vector<std::uint32_t> tables;
  for (const auto& [id, constant] : list.constants) {
    if (list.buffers[id].is_looked_up) tables.push_back(id);
  }
  for (const std::uint32_t id : tables) PackedTable(list, id).change(facts);
}

}  // namespace tenon::codegen
