#pragma once

#include "nests/loop_nest.h"
#include "nests/nest_builder.h"

namespace tenon::codegen {

// Names from namespace nests that code generation uses.
using nests::Block;
using nests::Bounds;
using nests::Check;
using nests::LoopKind;
using nests::LoopNest;
using nests::NestBuffer;
using nests::NestSequence;
using nests::Scalar;
using nests::ScalarKind;
using nests::ScalarNode;
using nests::Statement;
using nests::StorageClass;

// Functions that argument-dependent lookup does not find.
using nests::integer_scalar;
using nests::literal_scalar;
using nests::local_scalar;
using nests::loop_scalar;

}  // namespace tenon::codegen
