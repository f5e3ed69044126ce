#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline target {

class Target;

/// A compilation target, as data. As text, a processor is its name ("native", "zen4", "x86-64-v3");
/// other kinds come first: "cuda", "cuda:sm_80".
struct TargetSpec {
  /// Number format in which contractions multiply. Tf32 and Int8 exist on GPUs only.
  enum class Precision : std::uint8_t { F32, Tf32, F16, BF16, Int8 };

  /// Name of the `TargetKind`.
  std::string kind = "cpu";
  /// A processor of `cpu_names()`, or a GPU architecture: "sm_90a".
  std::string architecture = "native";
  Precision precision = Precision::F32;

  bool is_gpu() const { return kind == "cuda"; }
  bool operator==(const TargetSpec&) const = default;
};

/// Returns the text that `parse_target_spec` reads, without the precision: "zen4", "cuda:sm_90a".
std::string to_string(const TargetSpec& spec);
/// Returns "f32", "tf32", "f16", "bf16" or "int8".
std::string to_string(TargetSpec::Precision precision);

/// A kind of target. Adding one takes a folder in `codegen` and a line in `driver/targets.cpp`.
struct TargetKind {
  std::string name;
  /// Known architectures, the default first.
  std::vector<std::string> architectures;
  /// Accepts further architectures; may be empty.
  std::function<bool(std::string_view architecture)> accepts = {};
  std::vector<TargetSpec::Precision> precisions = {TargetSpec::Precision::F32};
  std::function<std::shared_ptr<const Target>(const TargetSpec& spec)> make;
};

/// Parses a target and a precision ("": f32). A kind without an architecture has its default one.
/// Throws Error (Usage) with the nearest name.
TargetSpec parse_target_spec(std::string_view text, std::string_view precision,
                             std::span<const TargetKind> kinds);
/// Returns the target of a spec. Precondition: one of the kinds has the spec's name.
std::shared_ptr<const Target> make_target(const TargetSpec& spec,
                                          std::span<const TargetKind> kinds);

}  // namespace tenon::inline target
