#include "documents/document.h"

#include "base/text.h"
#include "documents/megengine/check.h"
#include "documents/megengine/import.h"
#include "documents/megengine/index.h"
#include "documents/megengine/tables.h"
#include "documents/megengine/write.h"

namespace tenon::megengine {
namespace {

class ProfileDocument : public Document {
 public:
  ProfileDocument(MegEngineProfile profile, std::string_view source)
      : profile_(std::move(profile)), index_(index_of(profile_, source)) {}

  Graph graph() const override { return import_graph(profile_, index_); }
  std::string text(std::string_view style) const override {
    refuse_style("megengine", style);
    return print_profile(profile_);
  }
  Findings check() const override { return check_profile(profile_, index_); }
  Page describe() const override { return describe_profile(profile_, index_); }

 private:
  MegEngineProfile profile_;
  Index index_;  // refers to profile_, which is never moved
};

// Recognises an object whose first member is one of the two parts.
bool recognises(std::string_view head) {
  head = trim(head);
  if (head.empty() || head.front() != '{') return false;
  head = trim(head.substr(1));
  return head.starts_with("\"profiler\"") || head.starts_with("\"graph_exec\"");
}

std::unique_ptr<Document> read(std::string_view text, std::string_view source) {
  return std::make_unique<ProfileDocument>(parse_profile(text, source), source);
}

std::unique_ptr<Document> put_down(const Graph& graph, const NativeNodes& own) {
  return std::make_unique<ProfileDocument>(write_graph(graph, own), "graph");
}

}  // namespace

DocumentFormat document_format() {
  return {"megengine", "MegEngine's profile of a graph, JSON", recognises, read, put_down};
}

}  // namespace tenon::megengine
