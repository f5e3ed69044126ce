#include "documents/document.h"

#include "base/error.h"
#include "base/text.h"
#include "base/text_place.h"
#include "documents/damp_branches.h"
#include "documents/relay/describe.h"
#include "documents/relay/exporter.h"
#include "documents/relay/importer.h"
#include "documents/relay/metadata.h"
#include "documents/relay/parser.h"
#include "documents/relay/printer.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tenon::documents::relay {

namespace {

// A number of a line or constant in the text. The printer's numbers increase with few exceptions;
// other versions and manual edits may number in other ways, which is not an error.
struct GivenNumber {
  std::int64_t says, should_be;
};
bool follows_printer(const std::vector<GivenNumber>& numbers) {
  constexpr std::size_t lines_for_each_break = 10;
  std::size_t breaks = 0;
  for (std::size_t k = 1; k < numbers.size(); ++k) {
    breaks +=
        numbers[k].says - numbers[k - 1].says != numbers[k].should_be - numbers[k - 1].should_be;
  }
  return breaks * lines_for_each_break <= numbers.size();
}

// Compares the numbers of lines and constants with the printer's, up to the first difference, which
// shifts all later ones.
void check_numbering(const RelayModule& module, std::string_view text, std::string_view source,
                     Findings& findings) {
  if (module.type_comments.empty()) return;  // written by hand, in any order
  Numbering numbering;
  print_module(module, module.style, &numbering);
  std::map<ExprId, std::size_t> line_of;
  for (std::size_t k = 0; k < numbering.lines.size(); ++k) line_of[numbering.lines[k]] = k;
  std::vector<GivenNumber> lines, constants;
  for (const LetBinding& binding : module.bindings) {
    const auto line = line_of.find(binding.expr);
    if (line != line_of.end())
      lines.push_back({binding.number, static_cast<std::int64_t>(line->second)});
  }
  for (std::size_t k = 0; k < numbering.constants.size(); ++k)
    constants.push_back({module.at(numbering.constants[k]).index, static_cast<std::int64_t>(k)});
  bool is_moved = !follows_printer(lines);
  for (const LetBinding& binding : module.bindings) {
    const auto place = [&] { return text_place(source, text, binding.position); };
    const auto line = line_of.find(binding.expr);
    if (line == line_of.end()) {
      findings.miss("line is read", place, concat("%", binding.number),
                    "no line: nothing reads it");
      is_moved = true;
      continue;
    }
    findings.hold("line is read");
    if (is_moved) continue;
    is_moved = binding.number != static_cast<std::int64_t>(line->second);
    findings.compare("line number", place, concat("%", binding.number), concat("%", line->second));
  }
  if (!follows_printer(constants)) return;
  for (std::size_t k = 0; k < numbering.constants.size(); ++k) {
    const RelayExpr& constant = module.at(numbering.constants[k]);
    const auto place = [&] { return text_place(source, text, constant.position); };
    const bool is_same = constant.index == static_cast<std::int64_t>(k);
    findings.compare("constant's index", place, constant.index, static_cast<std::int64_t>(k));
    if (!is_same) break;
  }
}

// Source of a text that was exported, not read.
struct GraphOrigin {
  Graph graph;
  NativeNodes own;
};

class RelayDocument : public Document {
 public:
  RelayDocument(RelayModule module, std::string text, std::string source,
                std::optional<GraphOrigin> origin)
      : module_(std::move(module)),
        text_(std::move(text)),
        source_(std::move(source)),
        origin_(std::move(origin)) {}

  Graph graph() const override {
    Graph graph = import_module(module_, text_, source_);
    if (!module_.metadata) damp_branches(graph);  // its weights are seeded
    return graph;
  }

  std::string text(std::string_view style) const override {
    if (style.empty()) return print_module(module_, module_.style);
    // The text of a graph lacks information that the graph has for the other styles.
    if (style == "metadata") return print_module(with_data(), CommentStyle::Document);
    const RelayModule& module = origin_ ? export_graph(origin_->graph, origin_->own) : module_;
    if (style == "later") return print_module(module, CommentStyle::Later);
    if (style == "document") return print_module(module, CommentStyle::Document);
    throw Error(concat("Relay has no style '", style, "'"), ErrorKind::Usage)
        .hint(suggest_name(style, std::vector<std::string>{"document", "later", "metadata"}));
  }

  Findings check() const override {
    Findings findings;
    check_numbering(module_, text_, source_, findings);
    try {
      check_types(module_, text_, source_, findings);
    } catch (const Error& error) {
      // An unknown operator prevents the graph, but the claims checked before it stand.
      if (error.kind() != ErrorKind::Unsupported) {
        findings.miss("network can be inferred", error.place(), "a program", error.summary());
      }
    }
    return findings;
  }

  Page describe() const override { return describe_module(module_); }

 private:
  // Adds the elements of constants: those of the file, of the graph, or seeded.
  RelayModule with_data() const {
    if (module_.metadata) return module_;
    return origin_ ? export_graph_with_data(origin_->graph, origin_->own)
                   : export_graph_with_data(graph());
  }

  RelayModule module_;
  std::string text_, source_;
  std::optional<GraphOrigin> origin_;
};

std::unique_ptr<Document> read(std::string_view text, std::string_view source) {
  return std::make_unique<RelayDocument>(parse_module(text, source), std::string(text),
                                         std::string(source), std::nullopt);
}

// Parses the text again, so that checks apply to the written document.
std::unique_ptr<Document> put_down(const Graph& graph, const NativeNodes& own) {
  const std::string text = print_module(export_graph(graph, own), CommentStyle::Document);
  return std::make_unique<RelayDocument>(parse_module(text, "graph"), text, "graph",
                                         GraphOrigin{graph, own});
}

}  // namespace

DocumentFormat document_format() { return {*find_known_format("relay"), read, put_down}; }

}  // namespace tenon::documents::relay
