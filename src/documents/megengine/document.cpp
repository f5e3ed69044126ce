#include "documents/document.h"

#include "documents/megengine/check.h"
#include "documents/megengine/formula.h"
#include "documents/megengine/import.h"
#include "documents/megengine/index.h"
#include "documents/megengine/problem.h"
#include "documents/megengine/run_profile.h"
#include "documents/megengine/tables.h"
#include "documents/megengine/write.h"

namespace tenon::documents::megengine {
namespace {

class ProfileDocument : public Document {
 public:
  ProfileDocument(MegEngineProfile profile, std::string_view source)
      : profile_(std::move(profile)), source_(source), index_(index_of(profile_, source)) {}

  Graph graph() const override { return import_graph(profile_, index_); }
  std::string text(std::string_view style) const override {
    refuse_style("megengine", style);
    return print_profile(profile_);
  }
  Findings check() const override { return check_profile(profile_, index_); }
  Page describe() const override { return describe_profile(profile_, index_); }
  std::optional<RecordedRun> recorded_run(const RunReading& /*reading*/,
                                          const memory::DeviceSpec& /*device*/) const override {
    return RecordedRun{
        problem_of(profile_, index_, source_), "the run that the profile tells of", {}};
  }
  std::optional<Profile> profile() const override { return run_profile(profile_, index_, source_); }

 private:
  MegEngineProfile profile_;
  std::string source_;
  Index index_;  // refers to profile_, which is never moved
};

std::unique_ptr<Document> read(std::string_view text, std::string_view source) {
  return std::make_unique<ProfileDocument>(parse_profile(text, source), source);
}

std::unique_ptr<Document> put_down(const Graph& graph, const NativeNodes& own) {
  return std::make_unique<ProfileDocument>(write_graph(graph, own), "graph");
}

}  // namespace

DocumentFormat document_format() {
  return {*find_known_format("megengine"), read, put_down, print_run, formula_of};
}

}  // namespace tenon::documents::megengine
