#include "driver/targets.h"

#include "codegen/cpu/cpu_target.h"
#include "codegen/cuda/cuda_target.h"
#include "codegen/cuda/nvrtc.h"
#include "tune/device_tuning.h"

namespace tenon::driver {

const std::vector<TargetKind>& target_kinds() {
  static const std::vector<TargetKind> kinds = {
      codegen::cpu::cpu_kind(),
      codegen::cuda::cuda_kind(tune::device_names()),
  };
  return kinds;
}

TargetSpec parse_target(std::string_view text, std::string_view precision) {
  return parse_target_spec(text, precision, target_kinds());
}

std::shared_ptr<const Target> make_target(const TargetSpec& spec) {
  return make_target(spec, target_kinds());
}

std::string cuda_compiler_name() { return codegen::cuda::compiler_name(); }

}  // namespace tenon::driver
