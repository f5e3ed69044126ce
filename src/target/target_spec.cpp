#include "target/target_spec.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tenon::inline target {
namespace {

constexpr std::pair<std::string_view, TargetSpec::Precision> kPrecisions[] = {
    {"f32", TargetSpec::Precision::F32},
    {"tf32", TargetSpec::Precision::Tf32},
    {"f16", TargetSpec::Precision::F16},
    {"bf16", TargetSpec::Precision::BF16},
    {"int8", TargetSpec::Precision::Int8}};

const TargetKind* find_kind(std::string_view name, std::span<const TargetKind> kinds) {
  const auto found = std::ranges::find(kinds, name, &TargetKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

bool has_architecture(const TargetKind& kind, std::string_view name) {
  return std::ranges::count(kind.architectures, name) > 0 || (kind.accepts && kind.accepts(name));
}

// The first kind needs no name before its architectures.
std::optional<TargetSpec> find_spec(std::string_view text, std::span<const TargetKind> kinds) {
  if (const TargetKind* kind = find_kind(text, kinds))
    return TargetSpec{kind->name, kind->architectures.front()};
  const std::size_t colon = text.find(':');
  const bool is_bare = colon == std::string_view::npos;
  const TargetKind* kind = is_bare ? &kinds.front() : find_kind(text.substr(0, colon), kinds);
  const std::string_view architecture = is_bare ? text : text.substr(colon + 1);
  if (kind == nullptr || !has_architecture(*kind, architecture)) return std::nullopt;
  return TargetSpec{kind->name, std::string(architecture)};
}

std::vector<std::string> known_names(std::span<const TargetKind> kinds) {
  std::vector<std::string> names = kinds.front().architectures;
  for (const TargetKind& kind : kinds.subspan(1)) {
    names.push_back(kind.name);
    for (const std::string& architecture : kind.architectures)
      names.push_back(to_string(TargetSpec{kind.name, architecture}));
  }
  return names;
}

TargetSpec::Precision parse_precision(std::string_view text, const TargetKind& kind) {
  const std::string_view name = text.empty() ? "f32" : text == "fp16" ? "f16" : text;
  const auto found = std::ranges::find(kPrecisions, name,
                                       &std::pair<std::string_view, TargetSpec::Precision>::first);
  std::vector<std::string> known;
  for (const TargetSpec::Precision each : kind.precisions) known.push_back(to_string(each));
  if (std::ranges::count(known, name) > 0) return found->second;
  const std::string last = known.back();
  known.pop_back();
  throw Error(concat("no precision is called '", text, "'"), ErrorKind::Usage)
      .expected(known.empty() ? last : concat(join(known, ", "), " or ", last));
}

}  // namespace

std::string to_string(const TargetSpec& spec) {
  return spec.kind == TargetSpec{}.kind ? spec.architecture
                                        : concat(spec.kind, ":", spec.architecture);
}

std::string to_string(TargetSpec::Precision precision) {
  return std::string(kPrecisions[static_cast<std::size_t>(precision)].first);
}

TargetSpec parse_target_spec(std::string_view text, std::string_view precision,
                             std::span<const TargetKind> kinds) {
  std::optional<TargetSpec> spec = find_spec(text, kinds);
  if (!spec) {
    throw Error(concat("no target is called '", text, "'"), ErrorKind::Usage)
        .hint(suggest_name(text, known_names(kinds)));
  }
  spec->precision = parse_precision(precision, *find_kind(spec->kind, kinds));
  return *std::move(spec);
}

std::shared_ptr<const Target> make_target(const TargetSpec& spec,
                                          std::span<const TargetKind> kinds) {
  const TargetKind* kind = find_kind(spec.kind, kinds);
  TENON_ASSERT(kind != nullptr, "a spec names a kind of the list");
  return kind->make(spec);
}

}  // namespace tenon::inline target
