#include "codegen/cuda/inline_copies.h"

#include "base/error.h"
#include "codegen/cuda/gemm_match.h"
#include "codegen/cuda/library_conditions.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/operand_copy.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace tenon::codegen::cuda {
namespace {

// A store that copies elements from another buffer.
struct CopyNest {
  std::vector<std::size_t> loops;  // by axis of the written buffer
  Dims dims;
  Scalar source;         // a load
  std::size_t from = 0;  // buffer of the sequence
  const LoopNest* nest = nullptr;
};

std::vector<std::size_t> given_buffers(const NestSequence::NestCall& part) {
  std::vector<std::size_t> ids;
  std::size_t given = 0;
  for (const NestBuffer& buffer : part.nest.buffers)
    ids.push_back(buffer.storage == StorageClass::Scratch ? SIZE_MAX : part.buffers[given++]);
  return ids;
}

// True for integer arithmetic on loops and extents.
bool is_loop_index(const Scalar& scalar) {
  const bool is_leaf = scalar->kind == ScalarKind::Integer || scalar->kind == ScalarKind::Loop ||
                       scalar->kind == ScalarKind::Extent;
  return is_leaf ||
         (scalar->kind == ScalarKind::Binary && std::ranges::all_of(scalar->args, is_loop_index));
}

// Returns the load if the value is an operand's element, possibly widened to f32.
std::optional<Scalar> copied(const Scalar& value, SourceIndices indices) {
  const Scalar* load = &value;
  if ((*load)->kind == ScalarKind::Cast) {
    const DType from = (*load)->args[0]->dtype, to = (*load)->dtype;
    const bool is_exact = to == DType::F32 && (from == DType::F16 || from == DType::BF16);
    if (!is_exact) return std::nullopt;
    load = &(*load)->args[0];
  }
  if ((*load)->kind != ScalarKind::Load || (*load)->bounds != Bounds::Inside) return std::nullopt;
  for (const Scalar& at : (*load)->args) {
    const bool suits =
        indices == SourceIndices::Any ? is_loop_index(at) : nests::affine_of(at).has_value();
    if (!suits) return std::nullopt;
  }
  return *load;
}

bool is_gemm(const LoopNest& nest) {
  const auto contraction = nests::find_contraction(nest);
  const std::optional<Statement> store =
      contraction ? only_store(*contraction) : std::optional<Statement>();
  return store && match_gemm(*contraction, *store).refusal.empty();
}

class Inliner {
 public:
  Inliner(NestSequence& sequence, SourceIndices indices, Readers readers)
      : sequence_(sequence), indices_(indices), readers_(readers) {}

  void run() {
    const std::vector<NestSequence::NestCall> before = sequence_.parts;  // copies point into it
    for (const NestSequence::NestCall& part : before) find_copies(part);
    if (copies_.empty()) return;
    std::set<std::size_t> still_read;
    for (NestSequence::NestCall& part : sequence_.parts) {
      NestSequence::NestCall given = part;
      rewrite(part);
      if (readers_ == Readers::KeepGemms && is_gemm(given.nest) && !is_gemm(part.nest))
        part = std::move(given);
      const std::vector<std::size_t> ids = given_buffers(part);
      nests::for_each_load(part.nest.body,
                           [&](const Scalar& load) { still_read.insert(ids[load->id]); });
    }
    for (NestSequence::NestCall& part : sequence_.parts) {
      drop_stores(part.nest.body, given_buffers(part), still_read);
      nests::drop_unused_buffers(part);
    }
    std::erase_if(sequence_.parts,
                  [](const NestSequence::NestCall& part) { return part.nest.body.empty(); });
  }

 private:
  void find_copies(const NestSequence::NestCall& part) {
    find_copies(part, part.nest.body, given_buffers(part));
  }
  void find_copies(const NestSequence::NestCall& part, const Block& block,
                   const std::vector<std::size_t>& ids) {
    for (const Statement& store : block) {
      if (store.kind == Statement::Kind::Loop && store.is_independent &&
          !store.limit.is_defined()) {
        extents_[store.id] = store.extent;
        find_copies(part, store.body, ids);
      }
      if (store.kind != Statement::Kind::Store) continue;
      const std::size_t to = ids[store.id];
      const auto source = copied(store.value, indices_);
      if (!source || to == SIZE_MAX || ids[(*source)->id] == SIZE_MAX) continue;
      const NestSequence::Buffer& target = sequence_.buffers[to];
      // The target is a temporary that the store writes whole; the source is an operand, which no
      // nest writes.
      if (target.role != NestSequence::BufferRole::Temporary || store.view != target.dims) continue;
      const std::size_t from = ids[(*source)->id];
      if (sequence_.buffers[from].role != NestSequence::BufferRole::Operand) continue;
      CopyNest copy{{}, target.dims, *source, from, &part.nest};
      for (std::size_t axis = 0; axis < store.indices.size(); ++axis) {
        const Scalar& at = store.indices[axis];
        const bool is_only = nests::is_integer(at, 0) && target.dims[axis] == Dim(1);
        const bool is_whole = at->kind == ScalarKind::Loop && extents_[at->id] == target.dims[axis];
        if (is_whole || is_only) copy.loops.push_back(is_only ? SIZE_MAX : at->id);
      }
      if (copy.loops.size() == store.indices.size()) copies_[to] = std::move(copy);
    }
  }

  void rewrite(NestSequence::NestCall& part) {
    const std::vector<std::size_t> ids = given_buffers(part);
    std::map<std::size_t, std::size_t> added;  // position in the nest, by buffer of the sequence
    LoopNest& nest = part.nest;
    nests::ScalarRewriter rewriting([&](ScalarNode node) {
      const bool is_load = node.kind == ScalarKind::Load && node.id < ids.size();
      const auto found = is_load ? copies_.find(ids[node.id]) : copies_.end();
      if (found == copies_.end() || node.bounds != Bounds::Inside)
        return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
      const CopyNest& copy = found->second;
      std::vector<Scalar> at = node.args;
      if (node.view != copy.dims) at = nests::reshaped_position(nest, node.view, copy.dims, at);
      const auto [place, is_new] = added.try_emplace(copy.from, nest.buffers.size());
      if (is_new) {
        const NestSequence::Buffer& source = sequence_.buffers[copy.from];
        nest.buffers.push_back(
            {concat("x", source.index), source.dtype, source.dims, StorageClass::Operand});
        part.buffers.push_back(copy.from);
      }
      ScalarNode load = copy.source.node();
      load.id = place->second;
      for (Scalar& arg : load.args) arg = at_position(nest, arg, copy, at);
      return Scalar(std::make_shared<const ScalarNode>(std::move(load)));
    });
    rewriting.apply(nest.body);
    nests::list_extents(nest);
  }

  // Rewrites an index of the copy's source at a position of the copy's target.
  static Scalar at_position(LoopNest& nest, const Scalar& scalar, const CopyNest& copy,
                            const std::vector<Scalar>& at) {
    if (scalar->kind == ScalarKind::Loop) {
      const auto axis = std::find(copy.loops.begin(), copy.loops.end(), scalar->id);
      return at[static_cast<std::size_t>(axis - copy.loops.begin())];
    }
    if (scalar->kind == ScalarKind::Extent) return nest.extent(copy.nest->extents[scalar->id]);
    if (scalar->args.empty()) return scalar;
    std::vector<Scalar> args;
    for (const Scalar& arg : scalar->args) args.push_back(at_position(nest, arg, copy, at));
    if (scalar->kind == ScalarKind::Binary)
      return nests::binary_scalar(scalar->binary, scalar->dtype, args[0], args[1]);
    ScalarNode node = scalar.node();
    node.args = std::move(args);
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }

  void drop_stores(Block& block, const std::vector<std::size_t>& ids,
                   const std::set<std::size_t>& still_read) const {
    for (Statement& statement : block) drop_stores(statement.body, ids, still_read);
    std::erase_if(block, [&](const Statement& statement) {
      if (statement.kind == Statement::Kind::Loop) return statement.body.empty();
      return statement.kind == Statement::Kind::Store && ids[statement.id] != SIZE_MAX &&
             copies_.contains(ids[statement.id]) && !still_read.contains(ids[statement.id]);
    });
  }

  NestSequence& sequence_;
  const SourceIndices indices_;
  const Readers readers_;
  std::map<std::size_t, CopyNest> copies_;  // by written buffer
  std::map<std::size_t, Dim> extents_;      // by loop
};

}  // namespace

void inline_copies(NestSequence& sequence, SourceIndices indices, Readers readers) {
  if (sequence.parts.size() > 1) Inliner(sequence, indices, readers).run();
}

}  // namespace tenon::codegen::cuda
