#include "nests/generalise.h"

#include "base/error.h"
#include "nests/affine.h"
#include "nests/index_map.h"

#include <algorithm>

namespace tenon::nests {
namespace {

bool is_plain(const Block& block) {
  return std::all_of(block.begin(), block.end(), [](const Statement& statement) {
    return statement.loop != LoopKind::Jam && statement.loop != LoopKind::Dot &&
           !statement.limit.is_defined() && statement.kind != Statement::Kind::Update &&
           is_plain(statement.body);
  });
}

bool may_be_general(const LoopNest& nest) {
  const bool has_scratch =
      std::any_of(nest.buffers.begin(), nest.buffers.end(),
                  [](const NestBuffer& buffer) { return buffer.storage == StorageClass::Scratch; });
  if (has_scratch || !is_plain(nest.body)) return false;
  bool is_unchecked = true;
  for_each_load(nest.body,
                [&](const Scalar& load) { is_unchecked &= load->bounds == Bounds::Inside; });
  return is_unchecked;
}

class Generaliser {
 public:
  explicit Generaliser(LoopNest nest) { made_.nest = std::move(nest); }

  GeneralNest run() {
    LoopNest& nest = made_.nest;
    // Removes details that do not affect code: names, and sizes of buffers accessed through views.
    nest.name.clear();
    for (std::size_t k = 0; k < nest.buffers.size(); ++k) {
      nest.buffers[k].name = concat(nest.buffers[k].storage == StorageClass::Result ? "y" : "x", k);
      nest.buffers[k].dims.clear();
    }
    ScalarRewriter([&](ScalarNode node) {
      if (node.kind == ScalarKind::Load) see(node.args, node.view);
      return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    }).apply(nest.body);
    for_each_statement(nest.body, [&](Statement& statement) {
      if (statement.kind == Statement::Kind::Loop) statement.extent = given(statement.extent);
      if (statement.kind == Statement::Kind::Store) see(statement.indices, statement.view);
    });
    return std::move(made_);
  }

 private:
  Dim given(std::int64_t number) {
    // A name that no graph symbol has.
    made_.nest.extents.push_back(Dim::symbol(concat("#", made_.numbers.size())));
    made_.numbers.push_back(number);
    return made_.nest.extents.back();
  }
  // Extents of 1 are elided from addresses and loops, so nests with and without them are different
  // code.
  Dim given(const Dim& dim) {
    return dim.is_constant() && dim.constant() > 1 ? given(dim.constant()) : dim;
  }

  Scalar given_scalar(const Scalar& number) {
    return number->kind == ScalarKind::Integer && number->integer > 0
               ? made_.nest.extent(given(number->integer))
               : number;
  }

  void see(std::vector<Scalar>& coordinates, Dims& view) {
    for (std::size_t axis = 0; axis < view.size(); ++axis) {
      coordinates[axis] = moved(coordinates[axis]);
      view[axis] = given(view[axis]);
    }
  }

  Scalar moved(const Scalar& coordinate) {
    if (coordinate->kind != ScalarKind::Binary || coordinate->binary != BinaryOp::Add)
      return given_scalar(coordinate);
    return binary_scalar(BinaryOp::Add, coordinate->dtype, given_scalar(coordinate->args[0]),
                         given_scalar(coordinate->args[1]));
  }

  GeneralNest made_;
};

}  // namespace

std::optional<GeneralNest> generalised(const LoopNest& nest) {
  if (!may_be_general(nest)) return std::nullopt;
  return Generaliser(nest).run();
}

}  // namespace tenon::nests
