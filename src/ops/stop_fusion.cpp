#include "ops/definition/pass_through.h"

namespace tenon::inline ops::stop_fusion_op {
TENON_DEFINE_OP(stop_fusion) = OpSpec<NoAttrs>{
    .name = "stop_fusion",
    .summary = "x itself; what makes it and what reads it stay in different kernels",
    .operands = {"x"},
    .results = {"y"},
    .infer = pass_through::infer<NoAttrs>,
    .lower = pass_through::lower<NoAttrs>,
    .gradient = pass_through::gradient<NoAttrs>,
    .fusion = Fusion::Opaque,
    .layout = any_layout(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::stop_fusion_op
