#include "base/error.h"
#include "base/text.h"
#include "base/text_place.h"
#include "program/text.h"

#include <array>
#include <cctype>
#include <limits>

namespace tenon::inline program {
namespace {

// Tokenizer for the text form of programs. Skips white space.
class ProgramCursor {
 public:
  ProgramCursor(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_).starts_with(token) &&
        !(is_word(token.back()) && is_word(peek(token.size())))) {
      at_ += token.size();
      return true;
    }
    return false;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(concat("expected '", token, "'"));
  }
  std::string quoted() {
    skip();
    const std::size_t begin = at_;
    if (peek(0) != '"') fail("expected a quoted text");
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
    if (at_ >= text_.size()) fail("a text without an end");
    ++at_;
    const std::optional<std::string> text = unquote(text_.substr(begin, at_ - begin));
    if (!text) fail("expected a quoted text");
    return *text;
  }
  std::int64_t integer() {
    const std::string_view token = number_token();
    const std::optional<std::int64_t> value = parse_integer(token);
    if (!value) fail("expected an integer");
    return *value;
  }
  template <class T>
  T natural() {
    const std::string_view token = number_token();
    std::uint64_t value = 0;
    for (const char c : token) {
      if (c < '0' || c > '9' || __builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
          __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value)) {
        fail("expected a number");
      }
    }
    if (token.empty() || value > std::numeric_limits<T>::max()) fail("expected a number");
    return static_cast<T>(value);
  }
  double real() {
    const std::optional<double> value = parse_real(number_token());
    if (!value) fail("expected a number");
    return *value;
  }
  bool is_at(char c) {
    skip();
    return peek(0) == c;
  }
  bool is_at_end() {
    skip();
    return at_ == text_.size();
  }
  [[noreturn]] void fail(std::string what) {
    throw Error(std::move(what)).at(text_place(source_, text_, at_));
  }

 private:
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }
  char peek(std::size_t ahead) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  std::string_view number_token() {
    skip();
    const std::size_t begin = at_;
    while (is_word(peek(0)) || peek(0) == '.' || peek(0) == '-' || peek(0) == '+') ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string_view text_, source_;
  std::size_t at_ = 0;
};

constexpr std::array<std::string_view, 10> kAttributeKinds = {
    "bool", "integer", "real", "text", "element", "integers", "reals", "texts", "constant", "type"};
constexpr std::array<std::string_view, 4> kCheckKinds = {"equal", "at_most", "one_or", "broadcast"};

class ProgramParser {
 public:
  ProgramParser(std::string_view text, std::string_view source) : in_(text, source) {}

  Program run() {
    in_.expect("program");
    program_.name = in_.quoted();
    in_.expect("for");
    program_.target = in_.quoted();
    in_.expect("{");
    while (!in_.take("}")) entry();
    if (!in_.is_at_end()) in_.fail("a program ends here");
    for (Program::Step& step : program_.steps) {
      if (step.kind != Program::StepKind::Kernel) step.buffers = buffers_of(program_, step);
    }
    return std::move(program_);
  }

 private:
  template <std::size_t N>
  std::size_t one_of(const std::array<std::string_view, N>& words) {
    for (std::size_t k = 0; k < N; ++k) {
      if (in_.take(words[k])) return k;
    }
    in_.fail("expected one of a few words");
  }
  template <class F>
  void list(std::string_view begin, char end, F read) {
    in_.expect(begin);
    for (bool is_first = true; !in_.take({&end, 1}); is_first = false) {
      if (!is_first) in_.expect(",");
      read();
    }
  }
  std::uint32_t buffer() {
    if (in_.take("_")) return kNoBuffer;
    in_.expect("%");
    return in_.natural<std::uint32_t>();
  }
  std::vector<std::uint32_t> buffers() {
    std::vector<std::uint32_t> made;
    list("(", ')', [&] { made.push_back(buffer()); });
    return made;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> made;
    list("[", ']', [&] { made.push_back(in_.quoted()); });
    return made;
  }
  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> made;
    list("[", ']', [&] { made.push_back(in_.natural<std::uint64_t>()); });
    return made;
  }
  std::vector<Extent> extents() {
    std::vector<Extent> made;
    list("[", ']', [&] { made.push_back(extent()); });
    return made;
  }
  // Every operation is parenthesized.
  Extent extent(int depth = 0) {
    if (depth > 200) in_.fail("an extent without end");
    if (in_.take("$")) return Extent::symbol(in_.natural<std::uint32_t>());
    if (!in_.take("(")) return in_.integer();
    std::vector<Extent::Instruction> steps = extent(depth + 1).steps();
    const std::size_t op = one_of(std::array<std::string_view, 5>{"+", "*", "/", "min", "max"});
    const Extent second = extent(depth + 1);
    in_.expect(")");
    steps.insert(steps.end(), second.steps().begin(), second.steps().end());
    steps.push_back({static_cast<Extent::Op>(op + 2), 0});
    return Extent::of(std::move(steps));
  }
  void require_next(std::size_t number, std::size_t count) {
    if (number != count) in_.fail(concat("numbers go up: ", count, " comes next"));
  }

  void entry() {
    if (in_.is_at('%')) return buffer_entry();
    if (in_.take("symbol")) return symbol();
    if (in_.take("check")) return check();
    if (in_.take("kernel")) return kernel();
    if (in_.take("step")) return step();
    if (in_.take("inputs")) return void(program_.inputs = buffers());
    if (in_.take("outputs")) return void(program_.outputs = buffers());
    if (in_.take("state")) return state();
    if (in_.take("arena")) {
      program_.arena_bytes = in_.natural<std::uint64_t>();
      program_.is_arena_planned = in_.take("planned");
      return;
    }
    in_.expect("constants");
    program_.constant_bytes = in_.natural<std::uint64_t>();
  }

  void state() {
    Program::State& made = program_.states.emplace_back();
    in_.expect("input");
    made.input = in_.natural<std::uint32_t>();
    in_.expect("output");
    made.output = in_.natural<std::uint32_t>();
    if (in_.take("starts")) {
      in_.expect("with");
      made.starts_with_zeros = in_.take("zeros");
      if (!made.starts_with_zeros) made.initial = buffer();
    }
    made.may_overwrite = in_.take("in_place");
  }

  void symbol() {
    in_.expect("$");
    require_next(in_.natural<std::size_t>(), program_.symbols.size());
    Program::Symbol made;
    made.name = in_.quoted();
    in_.expect("from");
    made.lo = in_.integer();
    in_.expect("to");
    made.hi = in_.integer();
    in_.expect("axis");
    made.axis = in_.natural<std::uint32_t>();
    in_.expect("of");
    made.buffer = buffer();
    program_.symbols.push_back(std::move(made));
  }

  void check() {
    ShapeCheck made;
    made.kind = static_cast<ExtentRelation>(one_of(kCheckKinds));
    made.a = extent();
    in_.expect(",");
    made.b = extent();
    const std::vector<std::string> said = texts();
    if (said.size() != 3) in_.fail("a check says whose it is, where, and what");
    made.op = said[0];
    made.where = said[1];
    made.rule = said[2];
    if (in_.take("in")) {
      in_.expect("steps");
      made.begin = in_.natural<std::uint32_t>();
      in_.expect("to");
      made.end = in_.natural<std::uint32_t>();
    }
    program_.checks.push_back(std::move(made));
  }

  void buffer_entry() {
    in_.expect("%");
    require_next(in_.natural<std::size_t>(), program_.buffers.size());
    Program::Buffer made;
    made.name = in_.quoted();
    made.dtype = in_.quoted();
    in_.expect("of");
    made.element_bytes = in_.natural<std::uint32_t>();
    made.dims = extents();
    made.place = static_cast<Program::BufferKind>(one_of(
        std::array<std::string_view, 6>{"input", "output", "constant", "arena", "slot", "view"}));
    using BufferKind = Program::BufferKind;
    if (made.place == BufferKind::Constant || made.place == BufferKind::Arena) in_.expect("at");
    if (made.place == BufferKind::View) {
      in_.expect("of");
      made.offset = buffer();
    } else if (made.place != BufferKind::Slot) {
      made.offset = in_.natural<std::uint64_t>();
    }
    if (made.place == BufferKind::Constant) {
      made.is_looked_up = in_.take("looked_up");
      made.is_weight = in_.take("weight");
    }
    if (made.place == BufferKind::Arena || made.place == BufferKind::Slot) {
      in_.expect("in");
      in_.expect("steps");
      made.first_step = in_.natural<std::uint32_t>();
      in_.expect("to");
      made.last_step = in_.natural<std::uint32_t>();
    }
    program_.buffers.push_back(std::move(made));
  }

  void kernel() {
    require_next(in_.natural<std::size_t>(), program_.kernels.size());
    Program::Kernel made;
    made.name = in_.quoted();
    made.symbol = in_.quoted();
    in_.expect("scratch");
    made.scratch_bytes = extent();
    in_.expect("threads");
    made.threads = in_.natural<std::uint32_t>();
    in_.expect("library");
    made.library = in_.quoted();
    in_.expect("checks");
    made.checks = texts();
    in_.expect("shared");
    made.shared_bytes = in_.natural<std::uint32_t>();
    in_.expect("cluster");
    made.cluster = in_.natural<std::uint32_t>();
    while (in_.take("map")) {
      Program::TensorMap map;
      map.buffer = in_.natural<std::uint32_t>();
      in_.expect("rows");
      map.rows = extent();
      in_.expect("extents");
      map.extents = numbers();
      in_.expect("pitches");
      map.pitches = numbers();
      in_.expect("box");
      map.box = numbers();
      in_.expect("steps");
      map.steps = numbers();
      in_.expect("before");
      map.before = numbers();
      in_.expect("places");
      map.places = numbers();
      made.maps.push_back(std::move(map));
    }
    program_.kernels.push_back(std::move(made));
  }

  void step() {
    require_next(in_.natural<std::size_t>(), program_.steps.size());
    Program::Step made;
    made.name = in_.quoted();
    in_.expect("of");
    made.value = in_.quoted();
    in_.expect(":");
    made.kind = static_cast<Program::StepKind>(
        one_of(std::array<std::string_view, 4>{"kernel", "host", "branch", "loop"}));
    switch (made.kind) {
      case Program::StepKind::Kernel:
        call(made);
        break;
      case Program::StepKind::Host:
        made.detail = static_cast<std::uint32_t>(program_.operators.size());
        program_.operators.push_back(host());
        break;
      case Program::StepKind::Branch:
        made.detail = static_cast<std::uint32_t>(program_.branches.size());
        program_.branches.push_back(branch());
        break;
      case Program::StepKind::Loop:
        made.detail = static_cast<std::uint32_t>(program_.loops.size());
        program_.loops.push_back(loop());
        break;
    }
    program_.steps.push_back(std::move(made));
  }

  void call(Program::Step& made) {
    made.kernel = in_.natural<std::uint32_t>();
    made.buffers = buffers();
    in_.expect("extents");
    made.extents = extents();
    in_.expect("items");
    made.work = extent();
    in_.expect("by");
    made.candidate = in_.quoted();
    while (in_.take("when")) {
      Program::Guard& guard = made.when.emplace_back();
      in_.expect("$");
      guard.symbol = in_.natural<std::uint32_t>();
      in_.expect("from");
      guard.lo = in_.integer();
      in_.expect("to");
      guard.hi = in_.integer();
    }
    in_.expect("flops");
    made.flops = in_.real();
    in_.expect("bytes");
    made.bytes = in_.real();
  }

  HostOperator host() {
    HostOperator made;
    made.op = in_.quoted();
    list("{", '}', [&] {
      ProgramAttribute& attribute = made.attributes.emplace_back();
      attribute.name = in_.quoted();
      in_.expect("=");
      attribute.kind = static_cast<ProgramAttribute::Kind>(one_of(kAttributeKinds));
      attribute.integers = extents();
      list("[", ']', [&] { attribute.reals.push_back(in_.real()); });
      attribute.texts = texts();
      for (const char c : in_.quoted()) attribute.bytes.push_back(static_cast<std::byte>(c));
    });
    made.operands = buffers();
    in_.expect("to");
    made.results = buffers();
    in_.expect("layouts");
    made.layouts = texts();
    in_.expect("at");
    made.where = in_.quoted();
    return made;
  }

  BranchStep branch() {
    BranchStep made;
    in_.expect("on");
    made.condition = buffer();
    in_.expect("bodies");
    in_.expect("to");
    made.then_end = in_.natural<std::uint32_t>();
    in_.expect(",");
    made.else_end = in_.natural<std::uint32_t>();
    in_.expect("{");
    while (in_.take("result")) {
      BranchStep::Result& each = made.results.emplace_back();
      each.result = buffer();
      in_.expect("of");
      each.first = buffer();
      in_.expect(",");
      each.second = buffer();
    }
    in_.expect("}");
    return made;
  }

  LoopStep loop() {
    LoopStep made;
    in_.expect("body");
    in_.expect("to");
    made.end = in_.natural<std::uint32_t>();
    in_.expect("trips");
    made.trip_count = buffer();
    in_.expect("while");
    made.condition = buffer();
    in_.expect("counter");
    made.counter = buffer();
    in_.expect(",");
    made.goes_on = buffer();
    in_.expect("next");
    made.next_condition = buffer();
    in_.expect("runs");
    made.run_count = in_.real();
    in_.expect("{");
    while (in_.take("carry")) {
      LoopStep::Carried& each = made.carried.emplace_back();
      each.initial = buffer();
      in_.expect("as");
      each.in = buffer();
      in_.expect("from");
      each.out = buffer();
      in_.expect("to");
      each.result = buffer();
      in_.expect(",");
      each.spare = buffer();
      each.is_direct = in_.take("direct");
    }
    while (in_.take("scan")) {
      LoopStep::Scanned& each = made.scanned.emplace_back();
      each.source = buffer();
      in_.expect("as");
      each.in = buffer();
      in_.expect("axis");
      each.axis = in_.integer();
      each.is_reversed = in_.take("reversed");
      each.is_sequence = in_.take("sequence");
    }
    while (in_.take("stack")) {
      LoopStep::Stacked& each = made.stacked.emplace_back();
      each.out = buffer();
      in_.expect("to");
      each.result = buffer();
      in_.expect("axis");
      each.axis = in_.integer();
      each.is_reversed = in_.take("reversed");
      each.is_sequence = in_.take("sequence");
      each.is_direct = in_.take("direct");
    }
    in_.expect("}");
    return made;
  }

  ProgramCursor in_;
  Program program_;
};

}  // namespace

Program parse_program_text(std::string_view text, std::string_view source_name) {
  return ProgramParser(text, source_name).run();
}

ArenaText parse_plan_text(std::string_view text, std::string_view source_name) {
  ProgramCursor in(text, source_name);
  ArenaText plan;
  in.expect("plan");
  if (in.take(":")) {
    for (const std::string_view word : {"when", "shapes", "are", "known"}) in.expect(word);
    if (!in.is_at_end()) in.fail("a plan ends here");
    return plan;
  }
  in.expect("of");
  plan.bytes = in.natural<std::uint64_t>();
  in.expect("bytes");
  in.expect("{");
  while (!in.take("}")) {
    ArenaText::Line& line = plan.lines.emplace_back();
    in.expect("steps");
    line.first_step = in.natural<std::uint32_t>();
    in.expect("to");
    line.last_step = in.natural<std::uint32_t>();
    in.expect(":");
    in.expect("bytes");
    line.begin = in.natural<std::uint64_t>();
    in.expect("to");
    line.end = in.natural<std::uint64_t>();
    line.name = in.quoted();
    if (line.begin > line.end || line.end > *plan.bytes || line.first_step > line.last_step)
      in.fail("a buffer outside the plan");
  }
  if (!in.is_at_end()) in.fail("a plan ends here");
  return plan;
}

}  // namespace tenon::inline program
