#include "passes/train/with_loss.h"

#include "ops/definition/var_ops.h"
#include "passes/train/step_builder.h"

namespace tenon::passes {

Graph with_loss(Graph model, const LossOptions& options, DType labels) {
  Builder build(model);
  Var loss;
  if (options.kind == "l2") {
    const Var output(&build, model.outputs().at(0).index());
    loss = build.call("reduce_sum_square", {output}, {{"keep_axes", false}}) * 0.5;
  } else {
    loss = training::add_loss(build, options, false).loss;
  }
  model.set_outputs({ValueId(loss.id())});
  model.erase_dead();  // the accuracy
  const ValueId target = model.find(kTarget);
  if (target && is_integer(model.value(target).type.tensor().dtype)) {
    TensorType type = model.value(target).type.tensor();
    type.dtype = labels;
    model.set_type(target, type);
  }
  return model;
}

}  // namespace tenon::passes
