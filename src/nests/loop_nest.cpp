#include "nests/loop_nest.h"

#include "base/error.h"
#include "base/text.h"
#include "expr/names.h"
#include "ir/lexer.h"
#include "nests/result_type.h"
#include "nests/scalar_walk.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace tenon::nests {
namespace {

class NestPrinter {
 public:
  explicit NestPrinter(const LoopNest& nest) : nest_(nest) {}

  std::string run() {
    const bool is_bare = std::ranges::all_of(nest_.name, is_name_char);
    text_ = concat("kernel ", is_bare ? nest_.name : quote(nest_.name), " (");
    for (std::size_t k = 0; k < nest_.buffers.size(); ++k) {
      const NestBuffer& buffer = nest_.buffers[k];
      static constexpr std::string_view kStorages[] = {"", "out ", "scratch "};
      text_ += concat(k == 0 ? "" : ", ", kStorages[static_cast<std::size_t>(buffer.storage)],
                      buffer.name, ": ", buffer.dtype, buffer.dims,
                      buffer.ahead == 0 ? "" : concat(" fetched ", buffer.ahead, " ahead"),
                      buffer.largest == 0 ? "" : concat(" up to ", buffer.largest));
    }
    text_ += ")";
    print_extents();
    text_ += " {\n";
    name_loops(nest_.body);
    print(nest_.body, 1);
    return text_ + "}\n";
  }

 private:
  // Run-time extents, and ranges of symbols.
  void print_extents() {
    if (!nest_.extents.empty()) text_ += concat(" given ", nest_.extents);
    SymbolRanges symbols;
    const auto collect = [&](const Dims& dims) {
      for (const Dim& dim : dims) dim.collect_symbols(symbols);
    };
    collect(nest_.extents);
    for (const NestBuffer& buffer : nest_.buffers) collect(buffer.dims);
    std::erase_if(symbols, [](const auto& symbol) {
      return symbol.second == Range{0, kMaxExtent};
    });
    std::string_view before = " <";
    for (const auto& [name, range] : symbols) {
      text_ += concat(before, Dim::symbol(name, range), " in [", range.lo, ", ", range.hi, "]");
      before = ", ";
    }
    if (!symbols.empty()) text_ += ">";
  }

  // A name refers to the innermost loop of that name: nested loops with equal names are renamed.
  void name_loops(const Block& block) {
    for (const Statement& s : block) {
      if (s.kind != Statement::Kind::Loop) continue;
      std::string& name = loop_names_[s.id];
      if (name.empty()) {
        name = nest_.loop_names[s.id];
        while (open_.contains(name)) name += "_";
      }
      const bool is_new = open_.insert(name).second;
      name_loops(s.body);
      if (is_new) open_.erase(name);
    }
  }

  std::string list(const std::vector<Scalar>& scalars, std::size_t count) const {
    std::string text;
    for (std::size_t k = 0; k < count; ++k) text += (k == 0 ? "" : ", ") + scalar(scalars[k]);
    return text;
  }

  std::string scalar(const Scalar& s) const {
    const auto named = names_.find(&s.node());
    return named != names_.end() ? named->second : written_out(s);
  }

  std::string written_out(const Scalar& s) const {
    switch (s->kind) {
      case ScalarKind::Integer:
        return concat(s->integer, of_type(s->dtype, DType::I64));
      case ScalarKind::Real:
        return concat(format_real(s->real), of_type(s->dtype, DType::F32));
      case ScalarKind::Loop:
        return loop_name(s->id);
      case ScalarKind::Extent:
        return concat("dim(", nest_.extents[s->id], ")");
      case ScalarKind::Local:
        return concat("t", s->id);
      case ScalarKind::Position:
        return concat("place of t", s->id);
      case ScalarKind::Load: {
        const std::size_t rank = s->view.size();
        const NestBuffer& buffer = nest_.buffers[s->id];
        const std::string view = s->view == buffer.dims ? "" : concat(" as ", s->view, " at ");
        const std::string place = concat(buffer.name, view, "[", list(s->args, rank), "]",
                                         of_type(s->dtype, buffer.dtype));
        if (s->bounds == Bounds::Fill) return concat(place, " else ", scalar(s->args.back()));
        return s->bounds == Bounds::Checked ? concat("checked ", place) : place;
      }
      case ScalarKind::Unary:
        return concat(name_of(s->unary), "(", scalar(s->args[0]), ")",
                      of_type(s->dtype, result_type(s->unary, s->args[0]->dtype)));
      case ScalarKind::Binary:
        return concat("(", scalar(s->args[0]), " ", name_of(s->binary), " ", scalar(s->args[1]),
                      ")", of_type(s->dtype, result_type(s->binary, s->args[0]->dtype)));
      case ScalarKind::Select:
        return concat("(", scalar(s->args[0]), " ? ", scalar(s->args[1]), " : ", scalar(s->args[2]),
                      ")");
      case ScalarKind::Cast:
        return concat(s->dtype, "(", scalar(s->args[0]), ")");
    }
    return "";
  }

  static std::string written_extent(const Dim& dim) {
    return dim.is_constant() ? std::to_string(dim.constant()) : concat("dim(", dim, ")");
  }

  static std::string of_type(DType dtype, DType usual) {
    return dtype == usual ? "" : concat(":", dtype);
  }

  std::string loop_name(std::size_t id) const {
    const auto named = loop_names_.find(id);
    return named != loop_names_.end() ? named->second : nest_.loop_names[id];
  }

  std::string written_view(const Statement& s) const {
    return s.view == nest_.buffers[s.id].dims ? "" : concat(" as ", s.view, " at ");
  }

  void print(const Block& block, std::size_t depth) {
    for (const Statement& statement : block) print(statement, depth);
  }

  // Scalars are DAGs. Large ones are printed with `let` names for shared subexpressions.
  void name_parts(const std::vector<const Scalar*>& roots, std::size_t depth) {
    constexpr double kMostWrittenOut = 256;
    double size = 0;
    ScalarMemo<double> sizes;
    for (const Scalar* root : roots) size += tree_size(*root, sizes);
    if (size <= kMostWrittenOut) return;
    std::unordered_map<const ScalarNode*, int> uses;
    for (const Scalar* root : roots) count_uses(*root, uses);
    for (const Scalar* root : roots) name_parts(*root, uses, depth);
  }

  static double tree_size(const Scalar& s, ScalarMemo<double>& sizes) {
    return sizes.of(s, [&] {
      double size = 1;
      for (const Scalar& arg : s->args) size += tree_size(arg, sizes);
      return size;
    });
  }

  static void count_uses(const Scalar& s, std::unordered_map<const ScalarNode*, int>& uses) {
    if (s->args.empty() || ++uses[&s.node()] > 1) return;
    for (const Scalar& arg : s->args) count_uses(arg, uses);
  }

  void name_parts(const Scalar& s, std::unordered_map<const ScalarNode*, int>& uses,
                  std::size_t depth) {
    const auto used = uses.find(&s.node());
    if (used == uses.end()) return;  // Not shared, or already printed.
    const bool is_shared = used->second > 1;
    uses.erase(used);
    for (const Scalar& arg : s->args) name_parts(arg, uses, depth);
    if (!is_shared) return;
    std::string name = concat("v", name_count_++);
    text_ += concat(std::string(2 * depth, ' '), "let ", name, " = ", written_out(s), "\n");
    names_.emplace(&s.node(), std::move(name));
  }

  void name_parts(const Statement& s, std::size_t depth) {
    names_.clear();
    std::vector<const Scalar*> roots;
    for (const Scalar* root : {&s.limit, &s.place, &s.value}) {
      if (root->is_defined()) roots.push_back(root);
    }
    for (const Scalar& index : s.indices) roots.push_back(&index);
    name_parts(roots, depth);
  }

  void print(const Statement& s, std::size_t depth) {
    name_parts(s, depth);
    text_ += std::string(2 * depth, ' ');
    switch (s.kind) {
      case Statement::Kind::Loop: {
        static constexpr std::string_view kKinds[] = {
            "", " parallel", " vector", " parallel vector", " jam", " dot"};
        text_ += concat("for ", loop_name(s.id), " in 0..",
                        s.limit.is_defined() ? concat(scalar(s.limit), " of ") : "",
                        written_extent(s.extent), s.is_independent ? "" : " carried",
                        kKinds[static_cast<std::size_t>(s.loop)],
                        s.width > 1 ? concat(" by ", s.width) : "", " {\n");
        print(s.body, depth + 1);
        text_ += std::string(2 * depth, ' ') + "}\n";
        break;
      }
      case Statement::Kind::Define:
        text_ += concat("t", s.id, of_type(nest_.locals[s.id], DType::F32), " = ", scalar(s.value),
                        "\n");
        break;
      case Statement::Kind::Fold:
        text_ += concat("t", s.id, " = ", name_of(s.reduction), "(t", s.id, ", ", scalar(s.value),
                        s.place.is_defined() ? " at " + scalar(s.place) : "", ")\n");
        break;
      case Statement::Kind::Store:
        text_ += concat(nest_.buffers[s.id].name, written_view(s), "[",
                        list(s.indices, s.indices.size()), "] = ", scalar(s.value), "\n");
        break;
      case Statement::Kind::Update:
        text_ += concat(s.bounds == Bounds::Checked ? "checked " : "", nest_.buffers[s.id].name,
                        written_view(s), "[", list(s.indices, s.indices.size()), "] ",
                        name_of(s.reduction), "= ", scalar(s.value), "\n");
        break;
    }
  }

  const LoopNest& nest_;
  std::string text_;
  std::unordered_map<const ScalarNode*, std::string> names_;  // Names of shared subexpressions.
  std::map<std::size_t, std::string> loop_names_;
  std::set<std::string> open_;
  std::size_t name_count_ = 0;
};

}  // namespace

std::size_t LoopNest::new_loop(std::string loop_name) {
  loop_names.push_back(std::move(loop_name));
  return loop_names.size() - 1;
}

std::size_t LoopNest::new_local(DType dtype) {
  locals.push_back(dtype);
  return locals.size() - 1;
}

Scalar LoopNest::extent(const Dim& dim) {
  if (dim.is_constant()) return integer_scalar(dim.constant());
  const auto found = std::find(extents.begin(), extents.end(), dim);
  ScalarNode node;
  node.kind = ScalarKind::Extent;
  node.id = static_cast<std::size_t>(found - extents.begin());
  if (found == extents.end()) extents.push_back(dim);
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

Statement define_statement(std::size_t local, Scalar value) {
  Statement statement;
  statement.kind = Statement::Kind::Define;
  statement.id = local;
  statement.value = std::move(value);
  return statement;
}

Dim scratch_size(const NestBuffer& buffer) {
  constexpr std::int64_t alignment = 64;
  const auto size = static_cast<std::int64_t>(info(buffer.dtype).storage_bytes);
  return ceil_div(product(buffer.dims) * Dim(size), alignment) * Dim(alignment);
}

Dim scratch_bytes(const LoopNest& nest) {
  Dim total = 0;
  for (const NestBuffer& buffer : nest.buffers) {
    if (buffer.storage == StorageClass::Scratch) total = total + scratch_size(buffer);
  }
  return total;
}

Dim work_items(const LoopNest& nest) {
  Dim items = 1;
  const Block* block = &nest.body;
  while (block->size() == 1 && block->front().kind == Statement::Kind::Loop) {
    const Statement& loop = block->front();
    if (loop.loop == LoopKind::ParallelVector) return ceil_div(loop.extent, kVectorBlock);
    if (loop.loop != LoopKind::Parallel) break;
    items = items * loop.extent;
    block = &loop.body;
  }
  return items;
}

void drop_empty_loops(Block& block) {
  for (Statement& statement : block) drop_empty_loops(statement.body);
  std::erase_if(block, [](const Statement& statement) {
    return statement.kind == Statement::Kind::Loop &&
           (statement.extent == Dim(0) || statement.body.empty());
  });
}

std::string to_string(const LoopNest& nest) { return NestPrinter(nest).run(); }

}  // namespace tenon::nests
