#include "codegen/cuda/candidates.h"

#include "base/error.h"
#include "codegen/cuda/attention.h"
#include "expr/access.h"
#include "nests/contraction.h"
#include "nests/integer_contraction.h"

#include <algorithm>

namespace tenon::codegen::cuda {
namespace {

constexpr const char* kLoops = "loops";
// From this number of multiply-adds on, tensor cores or a library are always faster than loops.
constexpr double kMostByLoops = 1 << 26;

bool is_contraction(const LoopNest& nest) {
  return nests::find_contraction(nest) || nests::find_integer_contraction(nest.body);
}

double trips(const Block& block) {
  double most = 1;
  for (const Statement& statement : block) {
    if (statement.kind == Statement::Kind::Loop)
      most = std::max(most, size_hint(statement.extent) * trips(statement.body));
  }
  return most;
}

const DeviceKernel& main_of(const std::vector<DeviceKernel>& kernels) {
  const auto found =
      std::ranges::find_if(kernels, [](const DeviceKernel& k) { return k.candidate != kLoops; });
  return found == kernels.end() ? kernels.front() : *found;
}

std::string count_text(std::size_t kernels) {
  return concat(kernels, kernels == 1 ? " kernel" : " kernels");
}

class Listing {
 public:
  Listing(const NestSequence& sequence, const NestSequence::NestCall& part,
          const std::vector<bool>& is_constant)
      : sequence_(sequence), part_(part), is_constant_(is_constant) {}

  std::vector<DeviceKernel> kernels_for(const CudaTarget& target) const {
    NestSequence trial = sequence_;
    return select_kernels(trial, part_, is_constant_, target);
  }
  bool has(const std::string& name) const {
    return std::ranges::any_of(list, [&](const auto& each) { return each.name == name; });
  }
  void accept(const std::vector<DeviceKernel>& kernels, const CudaTarget& target) {
    const std::string& name = main_of(kernels).candidate;
    if (has(name)) return;
    Verdict verdict = yes(static_cast<double>(list.size()));
    verdict.reason = count_text(kernels.size());
    list.push_back({name, std::move(verdict), target});
  }
  void refuse(std::string name, std::string reason) {
    list.push_back({std::move(name), no(std::move(reason)), {}});
  }

  std::vector<DeviceCandidate> list;

 private:
  const NestSequence& sequence_;
  const NestSequence::NestCall& part_;
  const std::vector<bool>& is_constant_;
};

void add_tensor_cores(Listing& listing, const CudaTarget& target, const char* name,
                      bool has_fragments) {
  if (listing.has(name)) return;
  CudaTarget own = target;
  own.prefers_tensor_cores = true;
  own.prefers_mma_sync = has_fragments;
  if (!(has_fragments ? own.has_mma() : own.has_wgmma()))
    return listing.refuse(name, "the target has no such instructions");
  const std::vector<DeviceKernel> kernels = listing.kernels_for(own);
  if (main_of(kernels).candidate == name) return listing.accept(kernels, own);
  listing.refuse(name, "no generated tile kernel supports its types, extents and strides");
}

void add_library(Listing& listing, const CudaTarget& target) {
  constexpr const char* kLibrary = "library";
  if (!target.uses_libraries) return listing.refuse(kLibrary, "libraries are not wanted");
  CudaTarget others = target;
  others.uses_tensor_cores = false;
  const std::vector<DeviceKernel> kernels = listing.kernels_for(others);
  const DeviceKernel& main = main_of(kernels);
  if (main.library) return listing.accept(kernels, others);
  listing.refuse(kLibrary, main.refusal);
}

void add_loops(Listing& listing, const NestSequence::NestCall& part, const CudaTarget& target) {
  if (listing.has(kLoops)) return;
  const double products = trips(part.nest.body);
  if (products > kMostByLoops) {
    return listing.refuse(
        kLoops, concat("too slow for ", static_cast<std::int64_t>(products), " products"));
  }
  CudaTarget plain = target;
  plain.uses_tensor_cores = plain.uses_libraries = false;
  listing.accept(listing.kernels_for(plain), plain);
}

}  // namespace

std::string work_text(const CudaTarget& target) {
  return concat("cuda:", target.architecture, target.allows_tf32 ? " tf32" : "",
                target.has_int8_multiply_add ? " bytes" : "", "\n");
}

std::vector<DeviceCandidate> device_candidates(const NestSequence& sequence,
                                               const NestSequence::NestCall& part,
                                               const std::vector<bool>& is_constant,
                                               const CudaTarget& target) {
  Listing listing(sequence, part, is_constant);
  listing.accept(listing.kernels_for(target), target);
  if (match_attention(part.nest) || !is_contraction(part.nest)) return std::move(listing.list);
  add_tensor_cores(listing, target, kWgmma, false);
  add_tensor_cores(listing, target, kMma, true);
  add_library(listing, target);
  add_loops(listing, part, target);
  return std::move(listing.list);
}

}  // namespace tenon::codegen::cuda
