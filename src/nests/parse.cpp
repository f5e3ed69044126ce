#include "nests/parse.h"

#include "base/error.h"
#include "base/text.h"
#include "expr/names.h"
#include "ir/lexer.h"
#include "nests/result_type.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tenon::nests {
namespace {

constexpr std::size_t kMaxDepth = 2000;  // Nesting depth of scalars and loops.
constexpr std::int64_t kMostLocals = 1 << 20;

template <class Op>
std::optional<Op> named(std::string_view name, Op last) {
  for (std::size_t k = 0; k <= static_cast<std::size_t>(last); ++k) {
    if (name_of(static_cast<Op>(k)) == name) return static_cast<Op>(k);
  }
  return std::nullopt;
}

Scalar made(ScalarNode node) { return Scalar(std::make_shared<const ScalarNode>(std::move(node))); }

class NestParser {
 public:
  explicit NestParser(Lexer& lexer) : lexer_(lexer) {}

  LoopNest run() {
    if (!lexer_.take_word("kernel"))
      throw lexer_.error_here("expected a nest").expected("kernel NAME (…) { … }");
    if (lexer_.peek() != '(') nest_.name = lexer_.name("a kernel's name");
    read_symbols();
    read_buffers();
    read_extents();
    nest_.body = block();
    return std::move(nest_);
  }

 private:
  // Symbol ranges follow their uses in the text: they are read ahead, and skipped later.
  void read_symbols() {
    const std::size_t start = lexer_.position();
    lexer_.expect('(', "before a kernel's buffers");
    for (std::size_t open = 1; open > 0;) {
      const char c = lexer_.peek();
      if (c == '\0') throw lexer_.error_here("a kernel's buffers have no end");
      if (c == '"') {
        lexer_.text("a name");
        continue;
      }
      lexer_.take(c);
      open += c == '(';
      open -= c == ')';
    }
    if (lexer_.take_word("given")) skip_brackets();
    if (lexer_.take('<')) {
      do {
        const std::string name = lexer_.symbol();
        if (!lexer_.take_word("in"))
          throw lexer_.error_here("expected a symbol's range").expected("N in [1, 8]");
        lexer_.expect('[', "before a range");
        Range range;
        range.lo = lexer_.integer("the least value");
        lexer_.expect(',', "between the least and the greatest value");
        range.hi = lexer_.integer("the greatest value");
        lexer_.expect(']', "after a range");
        if (range.lo > range.hi || range.lo < 0)
          throw lexer_.error_here("a range is empty").got(range.lo, " to ", range.hi);
        symbols_[name] = range;
      } while (lexer_.take(','));
      lexer_.expect('>', "after symbols");
    }
    lexer_.seek(start);
  }

  void skip_brackets() {
    for (std::size_t open = 0;;) {
      const char c = lexer_.peek();
      if (c == '\0') throw lexer_.error_here("a list has no end");
      if (c == '"') {
        lexer_.text("a name");
        continue;
      }
      lexer_.take(c);
      open += c == '[';
      open -= c == ']';
      if (open == 0) return;
    }
  }

  void read_buffers() {
    lexer_.expect('(', "before a kernel's buffers");
    if (lexer_.take(')')) return;
    do {
      NestBuffer buffer;
      const std::size_t start = lexer_.position();
      std::string name = lexer_.name("a buffer's name");
      if ((name == "out" || name == "scratch") && lexer_.peek() != ':') {
        buffer.storage = name == "out" ? StorageClass::Result : StorageClass::Scratch;
        name = lexer_.name("a buffer's name");
      }
      lexer_.expect(':', "before a buffer's type");
      const Type type = lexer_.type(symbols_);
      if (!type.is_tensor())
        throw lexer_.error_at(start, "a buffer is a tensor of known rank").got(type);
      buffer.name = name;
      buffer.dtype = type.tensor().dtype;
      buffer.dims = type.tensor().dims;
      if (lexer_.take_word("fetched")) {
        buffer.ahead = lexer_.integer("how many elements ahead");
        if (!lexer_.take_word("ahead")) throw lexer_.error_here("expected the word 'ahead'");
      }
      if (lexer_.take_word("up")) {
        if (!lexer_.take_word("to")) throw lexer_.error_here("expected the word 'to'");
        buffer.largest = lexer_.integer("the size of its largest element");
      }
      if (!buffer_ids_.emplace(name, nest_.buffers.size()).second) {
        throw lexer_.error_at(start, concat("two buffers are called '", name, "'"));
      }
      nest_.buffers.push_back(std::move(buffer));
    } while (lexer_.take(','));
    lexer_.expect(')', "after a kernel's buffers");
  }

  void read_extents() {
    if (lexer_.take_word("given")) nest_.extents = dims();
    if (lexer_.peek() != '<') return;
    while (lexer_.peek() != '>') lexer_.take(lexer_.peek());
    lexer_.take('>');
  }

  Dims dims() {
    Dims read;
    lexer_.expect('[', "before extents");
    if (lexer_.take(']')) return read;
    do {
      read.push_back(lexer_.dim(symbols_));
    } while (lexer_.take(','));
    lexer_.expect(']', "after extents");
    return read;
  }

  Block block() {
    if (++depth_ > kMaxDepth) throw lexer_.error_here("loops stand too deep in each other");
    lexer_.expect('{', "before statements");
    Block statements;
    while (!lexer_.take('}')) {
      if (lexer_.is_at_end()) throw lexer_.error_here("a block has no end").expected("}");
      if (lexer_.take_word("let")) {
        const std::string name = lexer_.name("a part's name");
        lexer_.expect('=', "before a part's value");
        parts_[name] = scalar();
        continue;
      }
      statements.push_back(statement());
    }
    --depth_;
    return statements;
  }

  Statement statement() {
    if (lexer_.take_word("for")) return loop();
    Statement s;
    if (lexer_.take_word("checked")) s.bounds = Bounds::Checked;
    const std::size_t start = lexer_.position();
    const std::string name = lexer_.name("a local or a buffer");
    const bool is_element = lexer_.peek() == '[' || next_is_word("as");
    if (!is_element) return local_statement(name, start);
    s.id = buffer(name, start);
    s.view = view_of(s.id);
    s.indices = indices();
    if (lexer_.take('=')) {
      s.kind = Statement::Kind::Store;
      s.value = scalar();
      return s;
    }
    s.kind = Statement::Kind::Update;
    s.reduction = reduction();
    lexer_.expect('=', "after the combining operation of an update");
    s.value = scalar();
    return s;
  }

  bool next_is_word(std::string_view word) {
    const std::size_t start = lexer_.position();
    const bool is = lexer_.take_word(word);
    lexer_.seek(start);
    return is;
  }

  Reduction reduction() {
    const std::size_t start = lexer_.position();
    const std::string_view word = lexer_.word();
    const std::optional<Reduction> found = named(word, Reduction::Last);
    if (!found)
      throw lexer_.error_at(start, concat("'", word, "' is no reduction"))
          .expected("sum, max, arg_max, …");
    return *found;
  }

  // A definition, or a fold: `t0 = sum(t0, x[i])`.
  Statement local_statement(const std::string& name, std::size_t start) {
    Statement s;
    s.id = local(name, start);
    s.kind = Statement::Kind::Define;
    if (lexer_.take(':')) {
      nest_.locals[s.id] = dtype();
      is_defined_[s.id] = true;
    }
    lexer_.expect('=', "after a local");
    const std::size_t value = lexer_.position();
    const std::optional<Reduction> fold = named(lexer_.word(), Reduction::Last);
    if (fold && lexer_.take('(') && lexer_.take_word(name) && lexer_.take(',')) {
      s.kind = Statement::Kind::Fold;
      s.reduction = *fold;
      s.value = scalar();
      if (lexer_.take_word("at")) s.place = scalar();
      lexer_.expect(')', "after the folded values");
      return s;
    }
    lexer_.seek(value);
    s.value = scalar();
    is_defined_[s.id] = true;
    return s;
  }

  Statement loop() {
    Statement s;
    const std::string name = lexer_.name("a loop's name");
    if (!lexer_.take_word("in"))
      throw lexer_.error_here("expected how far a loop runs").expected("for i in 0..8 { … }");
    if (!lexer_.take('0') || !lexer_.take('.') || !lexer_.take('.')) {
      throw lexer_.error_here("loops run from 0").expected("0..8");
    }
    const std::optional<Dim> whole = loop_extent();
    if (whole && !next_is_word("of")) {
      s.extent = *whole;
    } else {
      s.limit = whole ? integer_scalar(whole->constant()) : scalar();
      if (!lexer_.take_word("of"))
        throw lexer_.error_here("expected a loop's extent after its limit").expected("of 8");
      const std::optional<Dim> extent = loop_extent();
      if (!extent) throw lexer_.error_here("expected an extent").expected("8 or dim(N)");
      s.extent = *extent;
    }
    s.is_independent = !lexer_.take_word("carried");
    if (lexer_.take_word("parallel"))
      s.loop = lexer_.take_word("vector") ? LoopKind::ParallelVector : LoopKind::Parallel;
    else if (lexer_.take_word("vector"))
      s.loop = LoopKind::Vector;
    else if (lexer_.take_word("jam"))
      s.loop = LoopKind::Jam;
    else if (lexer_.take_word("dot"))
      s.loop = LoopKind::Dot;
    if (lexer_.take_word("by")) {
      const std::int64_t width = lexer_.integer("how many positions at a time");
      if (width < 1 || width > (1 << 16))
        throw lexer_.error_here("a width lies between 1 and 65536").got(width);
      s.width = static_cast<unsigned>(width);
    }
    s.id = nest_.new_loop(name);
    const auto before =
        loops_.find(name) == loops_.end() ? std::nullopt : std::optional(loops_.at(name));
    loops_[name] = s.id;
    s.body = block();
    if (before)
      loops_[name] = *before;
    else
      loops_.erase(name);
    return s;
  }

  // Reads a number or `dim(…)`; any other scalar is a limit.
  std::optional<Dim> loop_extent() {
    const char c = lexer_.peek();
    if (c >= '0' && c <= '9') return Dim(lexer_.integer("an extent"));
    const std::size_t start = lexer_.position();
    if (!lexer_.take_word("dim")) return std::nullopt;
    lexer_.expect('(', "before an extent");
    const Dim dim = lexer_.dim(symbols_);
    lexer_.expect(')', "after an extent");
    if (next_is_word("of")) {
      lexer_.seek(start);
      return std::nullopt;
    }
    return dim;
  }

  // A colon adjacent to a name introduces a type; a separated one belongs to `?:`.
  bool takes_type() {
    const std::size_t before = lexer_.remaining();
    return lexer_.peek() == ':' && lexer_.remaining() == before && lexer_.take(':');
  }

  DType dtype() {
    const std::size_t start = lexer_.position();
    const std::string_view word = lexer_.word();
    const std::optional<DType> found = parse_dtype(word);
    if (!found) throw lexer_.error_at(start, concat("'", word, "' is no element type"));
    return *found;
  }

  std::size_t buffer(const std::string& name, std::size_t start) {
    const auto found = buffer_ids_.find(name);
    if (found == buffer_ids_.end())
      throw lexer_.error_at(start, concat("no buffer is called '", name, "'"));
    return found->second;
  }

  std::size_t local(const std::string& name, std::size_t start) {
    const std::optional<std::int64_t> number =
        name.starts_with("t") ? parse_integer(std::string_view(name).substr(1)) : std::nullopt;
    if (!number || *number < 0 || *number >= kMostLocals) {
      throw lexer_.error_at(start, concat("'", name, "' is no loop, local or buffer here"))
          .hint("locals are t0, t1, …; elements of buffers have [coordinates]");
    }
    const auto id = static_cast<std::size_t>(*number);
    while (nest_.locals.size() <= id) nest_.new_local(DType::F32);
    is_defined_.resize(nest_.locals.size());
    return id;
  }

  // A view other than the buffer's extents.
  Dims view_of(std::size_t id) {
    if (!lexer_.take_word("as")) return nest_.buffers[id].dims;
    Dims view = dims();
    if (!lexer_.take_word("at")) throw lexer_.error_here("expected 'at' after other extents");
    return view;
  }

  std::vector<Scalar> indices() {
    std::vector<Scalar> read;
    lexer_.expect('[', "before coordinates");
    if (lexer_.take(']')) return read;
    do {
      read.push_back(scalar());
    } while (lexer_.take(','));
    lexer_.expect(']', "after coordinates");
    return read;
  }

  Scalar scalar() {
    if (++depth_ > kMaxDepth) throw lexer_.error_here("numbers stand too deep in each other");
    Scalar read = number();
    --depth_;
    return read;
  }

  Scalar number() {
    const std::size_t start = lexer_.position();
    const char c = lexer_.peek();
    if (c == '(') return in_brackets();
    if (c == '-' || c == '!' || c == '~') {
      lexer_.take(c);
      if (lexer_.peek() == '(') return unary(std::string_view(&c, 1), start);
      lexer_.seek(start);
    }
    if (c == '-' || (c >= '0' && c <= '9')) return literal(start);
    if (lexer_.take_word("checked")) {
      const std::size_t at = lexer_.position();
      return load(lexer_.name("a buffer's name"), at, Bounds::Checked);
    }
    const std::string name = lexer_.name("a number");
    if (lexer_.peek() == '[' || next_is_word("as")) return load(name, start, Bounds::Inside);
    if (lexer_.peek() == '(') return call(name, start);
    if (const auto loop = loops_.find(name); loop != loops_.end()) return loop_scalar(loop->second);
    if (const auto part = parts_.find(name); part != parts_.end()) return part->second;
    if (name == "inf" || name == "nan") {
      lexer_.seek(start);
      return literal(start);
    }
    if (name == "place" && lexer_.take_word("of")) {
      const std::size_t at = lexer_.position();
      return position_scalar(local(lexer_.name("a local"), at));
    }
    const std::size_t id = local(name, start);
    if (!is_defined_[id])
      throw lexer_.error_at(start, concat("the local ", name, " is read before it has a value"));
    return local_scalar(id, nest_.locals[id]);
  }

  Scalar literal(std::size_t start) {
    const std::string_view text = lexer_.number();
    const std::optional<std::int64_t> whole = parse_integer(text);
    const std::optional<double> real = whole ? std::nullopt : parse_real(text);
    if (!whole && !real) throw lexer_.error_at(start, "expected a number").got(text);
    const DType type = takes_type() ? dtype() : whole ? DType::I64 : DType::F32;
    const bool is_whole = tenon::is_integer(type) || type == DType::Bool;
    if (is_whole != whole.has_value()) {
      throw lexer_.error_at(start, "a number is not of its type")
          .expected(is_whole ? "1" : "1.0")
          .got(text);
    }
    return literal_scalar(type, real.value_or(0), whole.value_or(0));
  }

  // (a + b), (c ? a : b).
  Scalar in_brackets() {
    lexer_.expect('(', "before a number");
    ScalarNode node;
    node.args.push_back(scalar());
    if (lexer_.take('?')) {
      node.kind = ScalarKind::Select;
      node.args.push_back(scalar());
      lexer_.expect(':', "between the two that one is taken of");
      node.args.push_back(scalar());
      node.dtype = node.args[1]->dtype;
    } else {
      node.kind = ScalarKind::Binary;
      node.binary = binary();
      node.args.push_back(scalar());
      node.dtype = result_type(node.binary, node.args[0]->dtype);
    }
    lexer_.expect(')', "after a number");
    if (node.kind == ScalarKind::Binary && takes_type()) node.dtype = dtype();
    return made(std::move(node));
  }

  BinaryOp binary() {
    const std::size_t start = lexer_.position();
    std::string name(lexer_.word());
    if (name.empty()) {
      for (std::string_view left = "+-*/%<>=";
           left.find(lexer_.peek()) != left.npos && name.size() < 2;) {
        const char c = lexer_.peek();
        if (c == '-' && !name.empty()) break;  // The sign of the next number.
        lexer_.take(c);
        name += c;
      }
    }
    const std::optional<BinaryOp> found = named(name, BinaryOp::Dp4a);
    if (!found)
      throw lexer_.error_at(start, "expected an operator").expected("+, *, min, …").got(name);
    return *found;
  }

  Scalar call(const std::string& name, std::size_t start) {
    if (name == "dim") {
      lexer_.expect('(', "before an extent");
      const Dim dim = lexer_.dim(symbols_);
      lexer_.expect(')', "after an extent");
      const auto found = std::find(nest_.extents.begin(), nest_.extents.end(), dim);
      if (found == nest_.extents.end()) {
        throw lexer_.error_at(start, concat("the kernel is not given ", dim))
            .hint("list it: (…) given [", dim, "] {");
      }
      ScalarNode node;
      node.kind = ScalarKind::Extent;
      node.id = static_cast<std::size_t>(found - nest_.extents.begin());
      return made(std::move(node));
    }
    const std::optional<DType> type = parse_dtype(name);
    if (!type) return unary(name, start);
    lexer_.expect('(', "before the operand of a cast");
    ScalarNode node;
    node.kind = ScalarKind::Cast;
    node.dtype = *type;
    node.args.push_back(scalar());
    lexer_.expect(')', "after the operand of a cast");
    return made(std::move(node));
  }

  Scalar unary(std::string_view name, std::size_t start) {
    const std::optional<UnaryOp> op = named(name, UnaryOp::IsNegativeInf);
    if (!op) throw lexer_.error_at(start, concat("'", name, "' is no function of one number"));
    lexer_.expect('(', "before an argument");
    Scalar x = scalar();
    lexer_.expect(')', "after an argument");
    const DType type = takes_type() ? dtype() : result_type(*op, x->dtype);
    return unary_scalar(*op, type, std::move(x));
  }

  Scalar load(const std::string& name, std::size_t start, Bounds bounds) {
    ScalarNode node;
    node.kind = ScalarKind::Load;
    node.id = buffer(name, start);
    node.bounds = bounds;
    node.view = view_of(node.id);
    node.args = indices();
    node.dtype = takes_type() ? dtype() : nest_.buffers[node.id].dtype;
    if (lexer_.take_word("else")) {
      node.bounds = Bounds::Fill;
      node.args.push_back(scalar());
    }
    return made(std::move(node));
  }

  Lexer& lexer_;
  LoopNest nest_;
  SymbolRanges symbols_;
  std::map<std::string, std::size_t, std::less<>> buffer_ids_, loops_;
  std::map<std::string, Scalar, std::less<>> parts_;
  std::vector<bool> is_defined_;
  std::size_t depth_ = 0;
};

}  // namespace

std::vector<LoopNest> parse_nests(std::string_view text, std::string_view source_name) {
  Lexer lexer(text, source_name);
  std::vector<LoopNest> nests;
  while (!lexer.is_at_end()) nests.push_back(NestParser(lexer).run());
  return nests;
}

LoopNest parse_nest(std::string_view text, std::string_view source_name) {
  Lexer lexer(text, source_name);
  LoopNest nest = NestParser(lexer).run();
  if (!lexer.is_at_end()) throw lexer.error_here("there is more than one nest");
  return nest;
}

}  // namespace tenon::nests
