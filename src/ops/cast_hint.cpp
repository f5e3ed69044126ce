#include "ops/definition/pass_through.h"

namespace tenon::inline ops::cast_hint_op {
namespace {

struct Attrs {
  DType dtype = DType::I8;
};

}  // namespace

TENON_DEFINE_OP(cast_hint) = OpSpec<Attrs>{
    .name = "cast_hint",
    .summary = "x itself; says that quantization may hold it in `dtype` here",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"dtype", &Attrs::dtype, required}},
    .infer = pass_through::infer<Attrs>,
    .lower = pass_through::lower<Attrs>,
    .gradient = pass_through::gradient<Attrs>,
    .fusion = Fusion::Opaque,
    .layout = any_layout(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::cast_hint_op
