#include "target/gpu_facts.h"

#include "target/target_spec.h"

#include <cstdlib>

namespace tenon::inline target {

bool is_gpu_architecture(std::string_view text) {
  constexpr std::string_view kPrefix = "sm_";
  if (!text.starts_with(kPrefix)) return false;
  std::string_view number = text.substr(kPrefix.size());
  if (number.ends_with('a')) number.remove_suffix(1);
  return number.size() >= 2 && number.size() <= 3 &&
         number.find_first_not_of("0123456789") == std::string_view::npos;
}

int compute_capability(const std::string& architecture) {
  return std::atoi(architecture.c_str() + std::string_view("sm_").size());
}

TargetFacts gpu_facts(const std::string& architecture) {
  constexpr double kMemory = 4.2e12;
  TargetFacts facts;
  facts.name = to_string(TargetSpec{"cuda", architecture});
  facts.instructions = architecture;
  facts.units = 132;
  facts.cluster_capable_units = 112;  // At least 104 and fewer than 124 were observed.
  facts.registers = 255;
  facts.vector_bits = 128;
  facts.line_bytes = 128;
  facts.cycles_per_s = 1.75e9;
  facts.rates = {{DType::F32, DType::F32, 51e12 / facts.units},
                 {DType::F32, DType::F32, 397e12 / facts.units, true},
                 {DType::F16, DType::F32, 786e12 / facts.units},
                 {DType::BF16, DType::F32, 786e12 / facts.units},
                 {DType::F64, DType::F64, 25e12 / facts.units}};
  // The L2 cache and memory serve all units together.
  facts.levels = {{227 << 10, 0, 128 * facts.cycles_per_s, false},
                  {50 << 20, 16, 2 * kMemory, true},
                  {0, 0, kMemory, true}};
  facts.start_s = 0.5e-6;  // One launch within a CUDA graph.
  facts.machine_balance = 12;
  facts.heuristics.image_layout = "NHWC";
  facts.heuristics.layout_loss_bytes_per_flop = 0.5;
  facts.keeps_tiles = false;
  if (compute_capability(architecture) >= kFragmentCapability) facts.gemm_tile = 128;
  return facts;
}

TargetFacts with_int8_tensor_cores(TargetFacts facts) {
  if (facts.gemm_tile == 0) return facts;
  facts.rates.push_back({DType::U8, DType::I32, 2 * facts.flops_per_s(DType::F16)});
  return facts;
}

}  // namespace tenon::inline target
