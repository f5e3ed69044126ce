#include "base/error.h"
#include "base/pattern.h"
#include "base/utf8.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace tenon {

/// Reads a pattern and appends its instructions. What may be repeated is kept as a piece of program
/// that starts at 0 and runs off its end, so that copies of it can be strung together.
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : all_(text), rest_(text) {}

  using Program = std::vector<Pattern::Instruction>;

  Program parse() {
    Program program = alternatives();
    if (!rest_.empty()) fail("a ')' has no '('");
    program.emplace_back();
    return program;
  }

 private:
  using Step = Pattern::Step;
  using Ranges = std::vector<Pattern::CharRange>;
  struct Flags {
    bool folds_case = false, is_multi_line = false, dot_is_all = false;
  };

  static constexpr std::size_t kMaxInstructions = 20'000;
  static constexpr int kMaxDepth = 200, kMaxRepeat = 1000;
  static constexpr char32_t kLastCode = 0x10FFFF;

  [[noreturn]] void fail(std::string_view why, ErrorKind kind = ErrorKind::InvalidModel) const {
    throw Error(concat("pattern: ", why), kind).got("'", all_.substr(0, 80), "'");
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  char32_t take_code() {
    if (rest_.empty()) fail("it ends too early");
    const CodePoint point = decode_utf8(rest_);
    if (point.bytes == 0) fail("it is not UTF-8");
    rest_.remove_prefix(point.bytes);
    return point.code;
  }

  static Program single(Step step) {
    Program program(1);
    program[0].step = step;
    program[0].next = 1;
    return program;
  }

  Program one_of(Ranges ranges) const {
    Program program = single(Step::Char);
    if (flags_.folds_case) fold_case(ranges);
    program[0].ranges = std::move(ranges);
    return program;
  }

  static void fold_case(Ranges& ranges) {
    const Ranges given = ranges;
    for (const Pattern::CharRange& range : given) {
      for (const auto& [first, last, distance] :
           {std::tuple{U'A', U'Z', 32}, std::tuple{U'a', U'z', -32}}) {
        const char32_t low = std::max(range.first, first), high = std::min(range.last, last);
        const auto moved = [&](char32_t code) {
          return static_cast<char32_t>(static_cast<int>(code) + distance);
        };
        if (low <= high) ranges.push_back({moved(low), moved(high)});
      }
    }
  }

  void append(Program& program, const Program& part) const {
    const std::size_t shift = program.size();
    if (shift + part.size() > kMaxInstructions) fail("it is too large", ErrorKind::Unsupported);
    for (Pattern::Instruction instruction : part) {
      instruction.next += shift;
      instruction.other += shift;
      program.push_back(std::move(instruction));
    }
  }

  // A step to the piece behind it and, besides, to `other`.
  static Pattern::Instruction split(std::size_t next, std::size_t other) {
    return {Step::Split, next, other, {}};
  }

  Program alternatives() {
    if (++depth_ > kMaxDepth) fail("it is nested too deeply", ErrorKind::Unsupported);
    const Flags outer = flags_;
    std::vector<Program> choices(1, sequence());
    while (take("|")) choices.push_back(sequence());
    std::size_t end = 2 * (choices.size() - 1);
    for (const Program& choice : choices) end += choice.size();
    Program program;
    for (std::size_t k = 0; k < choices.size(); ++k) {
      const std::size_t start = program.size();
      const bool is_last = k + 1 == choices.size();
      if (!is_last) program.push_back(split(start + 1, start + choices[k].size() + 2));
      append(program, choices[k]);
      if (!is_last) program.push_back({Step::Jump, end, 0, {}});
    }
    flags_ = outer;
    --depth_;
    return program;
  }

  Program sequence() {
    Program program;
    while (!rest_.empty() && rest_.front() != '|' && rest_.front() != ')') {
      if (take("\\Q")) {
        while (!rest_.empty() && !take("\\E")) {
          const char32_t code = take_code();
          const Program piece = one_of({{code, code}});
          const bool is_last = take("\\E");
          append(program, is_last ? repeated(piece) : piece);
          if (is_last) break;
        }
        continue;
      }
      append(program, repeated(atom()));
    }
    return program;
  }

  // Whether a repetition is lazy changes what a group holds, never whether the whole text matches.
  Program repeated(Program piece) {
    for (;;) {
      int least = 0;
      std::optional<int> most;
      if (take("*")) {
      } else if (take("+")) {
        least = 1;
      } else if (take("?")) {
        most = 1;
      } else if (!take_counts(least, most)) {
        return piece;
      }
      take("?");
      piece = repeat(piece, least, most);
    }
  }

  // "{2}", "{2,}" or "{2,5}"; anything else is literal text.
  bool take_counts(int& least, std::optional<int>& most) {
    const std::string_view before = rest_;
    if (take("{")) {
      if (const std::optional<int> first = take_number()) {
        least = *first;
        most = least;
        if (take(",")) most = take_number();
        if (take("}")) {
          if (most && *most < least) fail("a repetition ends before it begins");
          return true;
        }
      }
    }
    rest_ = before;
    return false;
  }

  std::optional<int> take_number() {
    std::optional<int> number;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      number = number.value_or(0) * 10 + (rest_.front() - '0');
      if (*number > kMaxRepeat) fail("it repeats too often", ErrorKind::Unsupported);
      rest_.remove_prefix(1);
    }
    return number;
  }

  Program repeat(const Program& piece, int least, std::optional<int> most) const {
    Program program;
    for (int k = 0; k < least; ++k) append(program, piece);
    if (!most) {
      Program loop{split(1, piece.size() + 2)};
      append(loop, piece);
      loop.push_back({Step::Jump, 0, 0, {}});
      append(program, loop);
      return program;
    }
    for (int k = least; k < *most; ++k) {
      Program maybe{split(1, piece.size() + 1)};
      append(maybe, piece);
      append(program, maybe);
    }
    return program;
  }

  Program atom() {
    if (take("(")) return group();
    if (take("[")) return one_of(bracket());
    if (take(".")) {
      if (flags_.dot_is_all) return one_of({{0, kLastCode}});
      return one_of({{0, U'\n' - 1}, {U'\n' + 1, kLastCode}});
    }
    if (take("^")) return single(flags_.is_multi_line ? Step::LineBegin : Step::Begin);
    if (take("$")) return single(flags_.is_multi_line ? Step::LineEnd : Step::End);
    if (take("\\")) return escaped();
    if (rest_.front() == '*' || rest_.front() == '+' || rest_.front() == '?') {
      fail("there is nothing to repeat");
    }
    const char32_t code = take_code();
    return one_of({{code, code}});
  }

  Program group() {
    const Flags outer = flags_;
    if (take("?")) {
      if (take("P<") || take("<")) {
        const std::size_t end = rest_.find('>');
        if (end == std::string_view::npos) fail("a group's name does not end");
        rest_.remove_prefix(end + 1);
      } else if (take_flags()) {
        return {};  // "(?i)" changes what follows in the group around it
      }
    }
    Program program = alternatives();
    if (!take(")")) fail("a '(' has no ')'");
    flags_ = outer;
    return program;
  }

  // Flags up to ')' (true) or ':' (false), where they hold in the group only.
  bool take_flags() {
    for (bool value = true;;) {
      const char32_t letter = take_code();
      if (letter == U')' || letter == U':') return letter == U')';
      if (letter == U'-') {
        value = false;
      } else if (letter == U'i') {
        flags_.folds_case = value;
      } else if (letter == U'm') {
        flags_.is_multi_line = value;
      } else if (letter == U's') {
        flags_.dot_is_all = value;
      } else if (letter != U'U') {
        fail("a group begins in a way that is not known", ErrorKind::Unsupported);
      }
    }
  }

  Program escaped() {
    if (take("A")) return single(Step::Begin);
    if (take("z")) return single(Step::End);
    if (take("b")) return single(Step::WordEdge);
    if (take("B")) return single(Step::NoWordEdge);
    if (take("C")) fail("\\C is not supported", ErrorKind::Unsupported);
    if (std::optional<Ranges> ranges = class_escape()) return one_of(std::move(*ranges));
    const char32_t code = escaped_code();
    return one_of({{code, code}});
  }

  static Ranges complement(Ranges ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    Ranges others;
    char32_t next = 0;
    for (const Pattern::CharRange& range : ranges) {
      if (range.first > next) others.push_back({next, range.first - 1});
      next = std::max(next, static_cast<char32_t>(range.last + 1));
    }
    if (next <= kLastCode) others.push_back({next, kLastCode});
    return others;
  }

  static Ranges named_class(std::string_view name) {
    static const std::map<std::string_view, Ranges> classes = {
        {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
        {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
        {"ascii", {{0, 0x7F}}},
        {"blank", {{'\t', '\t'}, {' ', ' '}}},
        {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
        {"digit", {{'0', '9'}}},
        {"graph", {{'!', '~'}}},
        {"lower", {{'a', 'z'}}},
        {"perl space", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}},
        {"print", {{' ', '~'}}},
        {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
        {"space", {{'\t', '\r'}, {' ', ' '}}},
        {"upper", {{'A', 'Z'}}},
        {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
        {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    };
    const auto found = classes.find(name);
    return found == classes.end() ? Ranges{} : found->second;
  }

  // \d, \w, \s and their opposites, after the backslash.
  std::optional<Ranges> class_escape() {
    if (take("d")) return named_class("digit");
    if (take("D")) return complement(named_class("digit"));
    if (take("w")) return named_class("word");
    if (take("W")) return complement(named_class("word"));
    if (take("s")) return named_class("perl space");
    if (take("S")) return complement(named_class("perl space"));
    if (rest_.starts_with('p') || rest_.starts_with('P')) {
      fail("classes of Unicode are not supported", ErrorKind::Unsupported);
    }
    return std::nullopt;
  }

  char32_t escaped_code() {
    const char32_t code = take_code();
    switch (code) {
      case U'a':
        return U'\a';
      case U'f':
        return U'\f';
      case U'n':
        return U'\n';
      case U'r':
        return U'\r';
      case U't':
        return U'\t';
      case U'v':
        return U'\v';
      case U'x':
        return hexadecimal();
      default:
        break;
    }
    const Ranges known = named_class("alnum");
    const bool is_letter_or_digit = std::any_of(known.begin(), known.end(), [&](const auto& range) {
      return code >= range.first && code <= range.last;
    });
    if (is_letter_or_digit) fail("an escape is not known", ErrorKind::Unsupported);
    return code;
  }

  char32_t hexadecimal() {
    const bool is_braced = take("{");
    char32_t code = 0;
    for (int digits = 0; is_braced ? !take("}") : digits < 2; ++digits) {
      const char32_t digit = take_code();
      const std::string_view known = "0123456789abcdef";
      const std::size_t value =
          digit < 0x80
              ? known.find(static_cast<char>(digit >= U'A' && digit <= U'F' ? digit + 32 : digit))
              : std::string_view::npos;
      if (value == std::string_view::npos) fail("a hexadecimal digit is missing");
      code = code * 16 + static_cast<char32_t>(value);
      if (code > kLastCode) fail("there is no such code point");
    }
    return code;
  }

  // After '['.
  Ranges bracket() {
    const bool is_complement = take("^");
    Ranges ranges;
    for (bool is_first = true; is_first || !take("]"); is_first = false) {
      if (rest_.empty()) fail("a '[' has no ']'");
      if (take("[:")) {
        const std::size_t end = rest_.find(":]");
        if (end == std::string_view::npos) fail("a named class does not end");
        std::string_view name = rest_.substr(0, end);
        rest_.remove_prefix(end + 2);
        const bool is_opposite = name.starts_with('^');
        if (is_opposite) name.remove_prefix(1);
        Ranges named = named_class(name);
        if (named.empty()) fail("a class of this name is not known");
        if (is_opposite) named = complement(std::move(named));
        ranges.insert(ranges.end(), named.begin(), named.end());
        continue;
      }
      const bool is_escape = take("\\");
      if (is_escape) {
        if (const std::optional<Ranges> named = class_escape()) {
          ranges.insert(ranges.end(), named->begin(), named->end());
          continue;
        }
      }
      const char32_t first = is_escape ? escaped_code() : take_code();
      char32_t last = first;
      if (rest_.size() > 1 && rest_.front() == '-' && rest_[1] != ']') {
        rest_.remove_prefix(1);
        last = take("\\") ? escaped_code() : take_code();
      }
      if (last < first) fail("a range ends before it begins");
      ranges.push_back({first, last});
    }
    if (!is_complement) return ranges;
    if (flags_.folds_case) fold_case(ranges);
    return complement(std::move(ranges));
  }

  std::string_view all_, rest_;
  Flags flags_;
  int depth_ = 0;
};

Pattern::Pattern(std::string_view text) : program_(PatternParser(text).parse()) {}

}  // namespace tenon
