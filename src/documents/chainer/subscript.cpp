#include "base/text.h"
#include "documents/chainer/functions.h"

#include <algorithm>

namespace tenon::documents::chainer {
namespace {

constexpr std::size_t kMaxSubscripts = 64;

// Parses Python's text of a tuple of slices, integers, None and Ellipsis.
class SubscriptReader {
 public:
  explicit SubscriptReader(std::string_view text) : rest_(text) {}

  std::optional<std::vector<Subscript>> read() {
    std::vector<Subscript> all;
    const bool has_brackets = take("(");
    while (!rest_.empty() && rest_ != ")" && all.size() < kMaxSubscripts) {
      const std::optional<Subscript> next = subscript();
      if (!next) return std::nullopt;
      all.push_back(*next);
      if (!take(", ") && !take(",") && rest_ != ")" && !rest_.empty()) return std::nullopt;
    }
    if (has_brackets && !take(")")) return std::nullopt;
    return rest_.empty() ? std::optional(all) : std::nullopt;
  }

 private:
  bool take(std::string_view word) {
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::int64_t> integer() {
    std::size_t end = rest_.substr(0, 1) == "-" ? 1 : 0;
    while (end < rest_.size() && rest_[end] >= '0' && rest_[end] <= '9') ++end;
    const std::optional<std::int64_t> value = parse_integer(rest_.substr(0, end));
    if (!value || *value < -kMaxExtentAttribute || *value > kMaxExtentAttribute)
      return std::nullopt;
    rest_.remove_prefix(end);
    return value;
  }

  bool bound(std::optional<std::int64_t>& value) {
    if (take("None")) return true;
    value = integer();
    return value.has_value();
  }

  std::optional<Subscript> subscript() {
    Subscript result;
    if (take("None")) {
      result.kind = Subscript::Kind::NewAxis;
    } else if (take("Ellipsis")) {
      result.kind = Subscript::Kind::Ellipsis;
    } else if (take("slice(")) {
      if (!bound(result.start) || !take(", ") || !bound(result.stop) || !take(", ") ||
          !bound(result.step) || !take(")") || result.step == 0) {
        return std::nullopt;
      }
    } else {
      result.kind = Subscript::Kind::Index;
      result.start = integer();
      if (!result.start) return std::nullopt;
    }
    return result;
  }

  std::string_view rest_;
};

std::string print_bound(const std::optional<std::int64_t>& bound) {
  return bound ? std::to_string(*bound) : "None";
}

}  // namespace

std::int64_t Subscript::count(std::int64_t extent) const {
  const std::int64_t stride = step.value_or(1);
  const bool is_forward = stride > 0;
  const std::int64_t low = is_forward ? 0 : -1, high = is_forward ? extent : extent - 1;
  const auto clamped = [&](std::int64_t bound) {
    return std::clamp(bound < 0 ? bound + extent : bound, low, high);
  };
  const std::int64_t first = start ? clamped(*start) : (is_forward ? low : high);
  const std::int64_t last = stop ? clamped(*stop) : (is_forward ? high : low);
  const std::int64_t span = is_forward ? last - first : first - last;
  const std::int64_t size = is_forward ? stride : -stride;
  return span <= 0 ? 0 : (span + size - 1) / size;
}

std::vector<Subscript> subscripts_of(const FunctionView& view) {
  const ChainerAttribute* given = view.function().find("slices");
  if (given != nullptr && std::holds_alternative<std::string>(given->value.value)) {
    if (auto all = SubscriptReader(std::get<std::string>(given->value.value)).read())
      return *std::move(all);
    throw view.error("slices", "this is no tuple of slices")
        .got(std::get<std::string>(given->value.value));
  }
  std::vector<Subscript> all;
  for (const std::int64_t index : view.integers("slices")) {
    all.push_back({Subscript::Kind::Index, index, {}, {}});
  }
  return all;
}

std::string print_subscripts(const std::vector<Subscript>& subscripts) {
  std::string text = "(";
  for (const Subscript& each : subscripts) {
    if (text.size() > 1) text += ", ";
    switch (each.kind) {
      case Subscript::Kind::Slice:
        text += concat("slice(", print_bound(each.start), ", ", print_bound(each.stop), ", ",
                       print_bound(each.step), ")");
        break;
      case Subscript::Kind::Index:
        text += print_bound(each.start);
        break;
      case Subscript::Kind::NewAxis:
        text += "None";
        break;
      case Subscript::Kind::Ellipsis:
        text += "Ellipsis";
        break;
    }
  }
  return text + (subscripts.size() == 1 ? ",)" : ")");
}

}  // namespace tenon::documents::chainer
