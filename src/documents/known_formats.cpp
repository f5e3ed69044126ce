#include "documents/known_formats.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>

namespace tenon::documents {
namespace {

bool is_aitemplate(std::string_view head) {
  const std::string_view start = "Tensors: ";
  if (head.substr(0, start.size()) != start) return false;
  const std::string_view rest = head.substr(start.size());
  return rest.substr(0, 1) == "{" || rest.substr(0, 12) == "\n\nOperators:";
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 12 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Recognises two counts followed by lines of an id, a size and a name.
bool is_chainer(std::string_view head) {
  const std::size_t first_end = head.find('\n');
  if (first_end == std::string_view::npos) return false;
  const std::string_view first = head.substr(0, first_end);
  const std::size_t gap = first.find(' ');
  if (gap == std::string_view::npos || !is_number(first.substr(0, gap)) ||
      !is_number(first.substr(gap + 1))) {
    return false;
  }
  const std::string_view rest = head.substr(first_end + 1);
  const std::string_view second = rest.substr(0, rest.find('\n'));
  const std::size_t id_end = second.find(' ');
  if (id_end == std::string_view::npos || !is_number(second.substr(0, id_end))) return false;
  const std::size_t bytes_end = second.find(' ', id_end + 1);
  return bytes_end != std::string_view::npos && bytes_end > id_end + 1 &&
         second.find_first_not_of("0123456789", id_end + 1) == bytes_end &&
         bytes_end + 1 < second.size();
}

// Recognises an object whose first member is one of the two parts.
bool is_megengine(std::string_view head) {
  head = trim(head);
  if (head.empty() || head.front() != '{') return false;
  head = trim(head.substr(1));
  return head.starts_with("\"profiler\"") || head.starts_with("\"graph_exec\"");
}

// The first word that is not a comment.
std::string_view first_word(std::string_view head) {
  for (;;) {
    head = trim(head);
    if (head.starts_with("//")) {
      const std::size_t end = head.find('\n');
      head = end == std::string_view::npos ? "" : head.substr(end);
    } else if (head.starts_with("/*")) {
      const std::size_t end = head.find("*/");
      head = end == std::string_view::npos ? "" : head.substr(end + 2);
    } else {
      return head;
    }
  }
}

bool is_relay(std::string_view head) {
  head = first_word(head);
  if (head.starts_with("#[version") || head.starts_with("v0.0.") || head.starts_with("free_var %"))
    return true;
  if (head.starts_with("def")) return trim(head.substr(3)).starts_with("@");
  if (!head.starts_with("fn")) return false;
  const std::string_view rest = trim(head.substr(2));
  return rest.starts_with("(%") || rest.starts_with("() ") || rest.starts_with("[");
}

// Matches "name, (shape) or ^name, …, TYPE, number".
bool is_like_a_row(std::string_view line) {
  const std::size_t first = line.find(", ");
  const std::size_t last = line.rfind(", ");
  if (first == std::string_view::npos || first == 0 || last <= first || last + 2 >= line.size())
    return false;
  if (line.substr(0, first).find(' ') != std::string_view::npos) return false;
  const char next = line[first + 2];
  if (next != '(' && next != '^') return false;
  if (line.find_first_not_of("0123456789", last + 2) != std::string_view::npos) return false;
  const std::string_view before = line.substr(0, last);
  const std::size_t type = before.rfind(", ");
  return type != std::string_view::npos && type > first &&
         before.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", type + 2) ==
             std::string_view::npos;
}

// One valid row among the first few suffices, so that a damaged file gets specific error messages.
bool is_tensorscope(std::string_view head) {
  for (int line = 0; line < 4; ++line) {
    const std::size_t end = head.find('\n');
    if (end == std::string_view::npos) return false;
    if (is_like_a_row(head.substr(0, end))) return true;
    head.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

std::span<const KnownFormat> known_formats() {
  static const KnownFormat formats[] = {
      {"aitemplate", "AITemplate's dump of a sorted graph", is_aitemplate},
      {"chainer", "a training step dumped from Chainer: variables, functions, what backward needs",
       is_chainer},
      {"megengine", "MegEngine's profile of a graph, JSON", is_megengine},
      {"tensorscope", "TensorScope: the nodes of a TensorFlow step, as a table", is_tensorscope},
      {"relay", "Relay text, the program form of TVM 0.8", is_relay},
  };
  return formats;
}

const KnownFormat* find_known_format(std::string_view name) {
  const auto formats = known_formats();
  const auto found = std::ranges::find(formats, name, &KnownFormat::name);
  return found == formats.end() ? nullptr : &*found;
}

}  // namespace tenon::documents
