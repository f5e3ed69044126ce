#pragma once

#include "ir/graph.h"

#include <string>

namespace tenon {

/// What `convert --train` writes of a model argument: a step of training, as the format has one. A
/// Chainer document is made of the forward half, as each of its functions has its backward beside
/// it; a TensorFlow step gives gradients, by that system's layout rule; others give the loss and
/// the gradients. `loss` as `train --loss` takes it, or "l2". Built-in networks come with their
/// dropout.
Graph document_step(const std::string& model, const std::string& format, const std::string& loss);

}  // namespace tenon
