#include "base/pattern.h"

#include "base/utf8.h"

namespace tenon {
namespace {

constexpr char32_t kNotUtf8 = 0xFFFD;

bool is_word(char32_t code) {
  return (code >= U'0' && code <= U'9') || (code >= U'A' && code <= U'Z') || code == U'_' ||
         (code >= U'a' && code <= U'z');
}

}  // namespace

/// The alternatives of one match, followed side by side: the set of instructions that may come
/// next.
class PatternRun {
 public:
  PatternRun(const std::vector<Pattern::Instruction>& program, std::string_view text)
      : program_(program), seen_(program.size(), 0) {
    while (!text.empty()) {
      const CodePoint point = decode_utf8(text);
      codes_.push_back(point.bytes == 0 ? kNotUtf8 : point.code);
      text.remove_prefix(point.bytes == 0 ? 1 : point.bytes);
    }
  }

  bool ends_in_match() {
    std::vector<std::size_t> now, next;
    follow(0, 0, now);
    for (std::size_t position = 0; position < codes_.size() && !now.empty(); ++position) {
      next.clear();
      for (std::size_t at : now) {
        for (const Pattern::CharRange& range : program_[at].ranges) {
          if (codes_[position] < range.first || codes_[position] > range.last) continue;
          follow(program_[at].next, position + 1, next);
          break;
        }
      }
      now.swap(next);
    }
    return matched_at_ == codes_.size();
  }

 private:
  bool is_word_at(std::size_t position) const {
    return position < codes_.size() && is_word(codes_[position]);
  }

  bool holds(Pattern::Step step, std::size_t position) const {
    const bool at_begin = position == 0, at_end = position == codes_.size();
    const bool is_edge = (!at_begin && is_word_at(position - 1)) != is_word_at(position);
    switch (step) {
      case Pattern::Step::Begin:
        return at_begin;
      case Pattern::Step::End:
        return at_end;
      case Pattern::Step::LineBegin:
        return at_begin || codes_[position - 1] == U'\n';
      case Pattern::Step::LineEnd:
        return at_end || codes_[position] == U'\n';
      case Pattern::Step::WordEdge:
        return is_edge;
      case Pattern::Step::NoWordEdge:
        return !is_edge;
      default:
        return true;
    }
  }

  // Adds the instructions that read a code point and are reached from `start` without one.
  void follow(std::size_t start, std::size_t position, std::vector<std::size_t>& reached) {
    pending_.assign(1, start);
    while (!pending_.empty()) {
      const std::size_t at = pending_.back();
      pending_.pop_back();
      if (seen_[at] == position + 1) continue;
      seen_[at] = position + 1;
      const Pattern::Instruction& instruction = program_[at];
      if (instruction.step == Pattern::Step::Char) {
        reached.push_back(at);
      } else if (instruction.step == Pattern::Step::Match) {
        matched_at_ = position;
      } else if (holds(instruction.step, position)) {
        pending_.push_back(instruction.next);
        if (instruction.step == Pattern::Step::Split) pending_.push_back(instruction.other);
      }
    }
  }

  const std::vector<Pattern::Instruction>& program_;
  std::vector<char32_t> codes_;
  std::vector<std::size_t>
      seen_;  // the last position (counted from 1) an instruction was reached at
  std::vector<std::size_t> pending_;
  std::size_t matched_at_ = static_cast<std::size_t>(-1);
};

bool Pattern::matches(std::string_view text) const {
  return PatternRun(program_, text).ends_in_match();
}

}  // namespace tenon
