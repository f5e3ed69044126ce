#include "codegen/cuda/fuse_epilogues.h"

#include "codegen/cuda/binding.h"
#include "codegen/cuda/canonicalize_loops.h"
#include "nests/affine.h"
#include "nests/contraction.h"
#include "nests/index_map.h"
#include "nests/operand_copy.h"
#include "nests/schedule/loops.h"
#include "nests/simplify_indices.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tenon::codegen::cuda {
namespace {

using NestCall = NestSequence::NestCall;

bool is_elementwise(const LoopNest& nest) {
  if (nest.body.size() != 1 || !is_free(nest.body.front())) return false;
  const bool has_scratch = std::ranges::any_of(nest.buffers, [](const NestBuffer& buffer) {
    return buffer.storage == StorageClass::Scratch;
  });
  const LoopBand band = band_of(nest.body.front());
  return !has_scratch && std::ranges::all_of(*band.inner, [](const Statement& statement) {
    return statement.kind == Statement::Kind::Define || statement.kind == Statement::Kind::Store;
  });
}

class EpilogueFusion {
 public:
  EpilogueFusion(const NestSequence& sequence, const NestCall& product, const NestCall& reader)
      : sequence_(sequence), product_(product), reader_(reader) {}

  std::optional<NestCall> run() {
    const auto contraction = nests::find_contraction(product_.nest);
    if (!contraction || contraction->inner->back().kind != Statement::Kind::Store)
      return std::nullopt;
    kept_ = &contraction->inner->back();
    number_ = nests::buffer_of(product_, kept_->id);
    if (sequence_.buffers[number_].role != NestSequence::BufferRole::Temporary ||
        std::ranges::find(reader_.buffers, number_) == reader_.buffers.end())
      return std::nullopt;
    split_divided_loops(reader_.nest);
    nests::simplify_indices(reader_.nest);
    if (!is_elementwise(reader_.nest)) return std::nullopt;
    const LoopBand band = band_of(reader_.nest.body.front());
    if (!map_loops(*contraction, band)) return std::nullopt;
    NestCall fused = product_;
    if (!add_buffers(fused)) return std::nullopt;
    Block inner(contraction->inner->begin(), contraction->inner->end() - 1);
    for (Statement& statement : moved(*band.inner, fused.nest))
      inner.push_back(std::move(statement));
    fused.nest.body = nests::in_loops(contraction->parallel, std::move(inner));
    nests::drop_unused_buffers(fused);
    list_extents(fused.nest);
    return fused;
  }

 private:
  std::size_t number_of(std::size_t buffer) const { return nests::buffer_of(reader_, buffer); }

  // Maps each loop of the reader to the loop of the contraction that runs along the same axis.
  bool map_loops(const nests::Contraction& contraction, const LoopBand& band) {
    std::map<std::size_t, Dim> extents;
    for (const Statement* loop : band.loops) extents[loop->id] = loop->extent;
    bool suits = true;
    nests::for_each_load(*band.inner, [&](const Scalar& load) {
      if (number_of(load->id) != number_) return;
      suits &= load->bounds == Bounds::Inside && load->view == kept_->view;
      for (std::size_t axis = 0; suits && axis < load->view.size(); ++axis) {
        const Scalar &read = load->args[axis], &written = kept_->indices[axis];
        if (nests::is_integer(read, 0) && nests::is_integer(written, 0)) continue;
        suits &= read->kind == ScalarKind::Loop && written->kind == ScalarKind::Loop &&
                 extents.contains(read->id) && load->view[axis] == extents[read->id];
        if (suits) suits &= loops_.try_emplace(read->id, written->id).first->second == written->id;
      }
    });
    if (!suits || loops_.size() != band.loops.size() ||
        loops_.size() != contraction.parallel.size())
      return false;
    return std::ranges::all_of(contraction.parallel, [&](const Statement* loop) {
      return std::ranges::any_of(loops_, [&](const auto& pair) {
        return pair.second == loop->id && extents[pair.first] == loop->extent;
      });
    });
  }

  // Adds the reader's buffers; one that the contraction reads must not be written.
  bool add_buffers(NestCall& fused) {
    for (std::size_t k = 0; k < reader_.nest.buffers.size(); ++k) {
      const std::size_t number = number_of(k);
      if (number == number_) continue;
      const auto known = std::ranges::find(product_.buffers, number);
      if (known != product_.buffers.end()) return false;
      buffers_[k] = fused.nest.buffers.size();
      fused.nest.buffers.push_back(reader_.nest.buffers[k]);
      fused.buffers.push_back(number);
    }
    return true;
  }

  // Returns the reader's statements in the contraction's loops, buffers and locals.
  Block moved(const Block& block, LoopNest& nest) {
    Block made = block;
    std::map<std::size_t, std::size_t> locals;
    for (Statement& statement : made) {
      if (statement.kind == Statement::Kind::Define) {
        locals[statement.id] = nest.new_local(reader_.nest.locals[statement.id]);
        statement.id = locals[statement.id];
      } else {
        statement.id = buffers_.at(statement.id);
      }
    }
    const Scalar value = nests::cast_scalar(kept_->value, product_.nest.buffers[kept_->id].dtype);
    nests::ScalarRewriter([&](ScalarNode node) {
      if (node.kind == ScalarKind::Loop) return loop_scalar(loops_.at(node.id));
      if (node.kind == ScalarKind::Extent) return nest.extent(reader_.nest.extents[node.id]);
      if (node.kind == ScalarKind::Local) node.id = locals.at(node.id);
      if (node.kind == ScalarKind::Load) {
        if (number_of(node.id) == number_) return value;
        node.id = buffers_.at(node.id);
      }
      return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    }).apply(made);
    return made;
  }

  const NestSequence& sequence_;
  const NestCall& product_;
  NestCall reader_;
  const Statement* kept_ = nullptr;  // the contraction's store
  std::size_t number_ = 0;           // the sequence's buffer between both
  std::map<std::size_t, std::size_t> loops_, buffers_;
};

}  // namespace

void fuse_epilogues(NestSequence& sequence) {
  for (std::size_t k = 0; k + 1 < sequence.parts.size(); ++k) {
    const NestCall &product = sequence.parts[k], &reader = sequence.parts[k + 1];
    std::optional<NestCall> fused = EpilogueFusion(sequence, product, reader).run();
    if (!fused) continue;
    // Other nests may read the contraction's result, too.
    const auto is_used = [&](std::size_t number) {
      for (std::size_t other = 0; other < sequence.parts.size(); ++other) {
        if (other != k && other != k + 1 &&
            std::ranges::find(sequence.parts[other].buffers, number) !=
                sequence.parts[other].buffers.end())
          return true;
      }
      return false;
    };
    const bool is_read_elsewhere = std::ranges::any_of(product.buffers, [&](std::size_t number) {
      return std::ranges::find(fused->buffers, number) == fused->buffers.end() && is_used(number);
    });
    if (is_read_elsewhere) continue;
    sequence.parts[k] = std::move(*fused);
    sequence.parts.erase(sequence.parts.begin() + static_cast<std::ptrdiff_t>(k) + 1);
  }
}

}  // namespace tenon::codegen::cuda
