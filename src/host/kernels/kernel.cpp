#include "host/kernels/kernel.h"

#include "host/kernels/list.h"

#include <algorithm>

namespace tenon::inline host {
namespace {

struct KernelEntry {
  std::string_view op;
  HostKernel kernel;
};
constexpr KernelEntry kKernels[] = {
    {"non_max_suppression", non_max_suppression_kernel},  // op-name: one kernel per operator
    {"nonzero", nonzero_kernel},
    {"top_k", top_k_kernel},
    {"unique", unique_kernel},
};

}  // namespace

std::int64_t HostCall::integer(std::string_view name, std::int64_t otherwise) const {
  const AttrValue* value = attributes.find(name);
  return value == nullptr ? otherwise : std::get<Dim>(*value).constant();
}

bool HostCall::flag(std::string_view name, bool otherwise) const {
  const AttrValue* value = attributes.find(name);
  return value == nullptr ? otherwise : std::get<bool>(*value);
}

HostKernel host_kernel(std::string_view op) {
  const auto* found = std::ranges::find(kKernels, op, &KernelEntry::op);
  return found == std::end(kKernels) ? nullptr : found->kernel;
}

}  // namespace tenon::inline host
