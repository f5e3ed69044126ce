#pragma once

#include "ir/graph.h"

#include <string>

namespace tenon::train {

/// Builds the training step that `convert --train` writes, in the conventions of the format. A
/// Chainer document has the forward pass only, since each of its functions implies its backward; a
/// TensorFlow step has gradients, in the layouts of that system's rule; other formats have the loss
/// and the gradients. `loss` as for `train --loss`, or "l2". Built-in networks include dropout.
Graph document_step(const std::string& model, const std::string& format, const std::string& loss);

}  // namespace tenon::train
