#include "base/error.h"
#include "frontends/onnx/import_node.h"

#include <algorithm>
#include <cctype>

namespace tenon::onnx {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

void import_string_concat(NodeImport& node) {
  node.output(node.call("string_concat", {node.input(0), node.input(1)}));
}

void import_string_split(NodeImport& node) {
  std::vector<Attr> attrs{{"delimiter", node.text("delimiter")}};
  if (node.has_attr("maxsplit")) attrs.emplace_back("max_splits", node.integer("maxsplit"));
  std::vector<std::string> names = node.output_names(2);
  if (names[0] == "_") names[0].clear();
  node.outputs(node.build.call_all("string_split", {node.input(0)}, attrs, std::move(names)));
}

void import_regex_full_match(NodeImport& node) {
  node.output(node.call("regex_full_match", {node.input(0)}, {{"pattern", node.text("pattern")}}));
}

// The locale only decides how letters change case, which goes by Unicode here.
void import_string_normalizer(NodeImport& node) {
  node.output(node.call("string_normalizer", {node.input(0)},
                        {{"case_change", lower_case(node.text("case_change_action", "NONE"))},
                         {"is_case_sensitive", node.integer("is_case_sensitive") != 0},
                         {"stopwords", node.texts("stopwords")}}));
}

void import_tfidf_vectorizer(NodeImport& node) {
  node.output(node.call("tfidf_vectorizer", {node.input(0)},
                        {{"mode", lower_case(node.text("mode", "TF"))},
                         {"min_gram_length", node.integer("min_gram_length", 1)},
                         {"max_gram_length", node.integer("max_gram_length", 1)},
                         {"max_skip_count", node.integer("max_skip_count")},
                         {"ngram_counts", node.integers("ngram_counts")},
                         {"ngram_indexes", node.integers("ngram_indexes")},
                         {"pool_integers", node.integers("pool_int64s")},
                         {"pool_texts", node.texts("pool_strings")},
                         {"weights", node.reals("weights")}}));
}

constexpr Handler text_table[] = {
    {"RegexFullMatch", import_regex_full_match},    {"StringConcat", import_string_concat},
    {"StringNormalizer", import_string_normalizer}, {"StringSplit", import_string_split},
    {"TfIdfVectorizer", import_tfidf_vectorizer},
};

}  // namespace

std::span<const Handler> text_handlers() { return text_table; }

}  // namespace tenon::onnx
