#include "documents/tensorscope/describe.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/tensorscope/names.h"
#include "documents/tensorscope/windows.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::documents::tensorscope {
namespace {

constexpr std::size_t max_rows = 60;

std::string bytes_text(std::int64_t bytes) {
  return format_bytes(static_cast<std::uint64_t>(bytes));
}

std::string in_gigabytes(std::int64_t bytes) {
  const std::string digits = std::to_string((bytes + 500000) / 1000000);
  if (digits.size() < 4) return concat(digits, " MB");
  return concat(digits.substr(0, digits.size() - 3), ".", digits.substr(digits.size() - 3), " GB");
}

class TableDescriber {
 public:
  TableDescriber(const TensorScopeTable& table, const DataFlow& step, std::string_view source)
      : table_(table),
        step_(step),
        source_(source),
        layouts_(find_layouts(table, step)),
        windows_(find_windows(table, step, layouts_)),
        readers_(table.rows.size()) {
    for (std::size_t at = 0; at < table.rows.size(); ++at) {
      if (table.rows[at].kind == RowKind::Fetch) fetched_.insert(table.rows[at].node);
      for (const DataSource& from : step.sources[at]) {
        if (from.row >= 0) readers_[static_cast<std::size_t>(from.row)].push_back(at);
      }
    }
  }

  Page page() {
    page_.title = concat(source_, ": the nodes of one TensorFlow step, as TensorScope lists them");
    add_rows();
    add_ops();
    add_flow();
    add_transposes();
    add_copies();
    add_evidence();
    add_legend();
    return std::move(page_);
  }

 private:
  std::size_t count(RowKind kind) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(table_.rows, [&](const Row& row) { return row.kind == kind; }));
  }

  Page::Section& section(std::string heading, std::string text, std::vector<std::string> columns) {
    Page::Section made;
    made.heading = std::move(heading);
    made.text = std::move(text);
    made.columns = std::move(columns);
    page_.sections.push_back(std::move(made));
    return page_.sections.back();
  }

  void add_rows() {
    std::map<DeviceName, std::size_t> devices;
    for (const Row& row : table_.rows) ++devices[row.device];
    std::string where;
    for (const auto& [device, rows] : devices)
      where += concat(where.empty() ? "" : ", ", rows, " on ", device);
    auto& made = section(
        "Rows",
        concat("TensorFlow ran one step of a graph and traced it; each row is a node of that graph "
               "as it "
               "ran, or what a GPU's stream saw of it. Rows tell shapes and devices, no times: ",
               table_.rows.size(), " rows, ", where, "."),
        {"kind", ">rows", "name", "what it is"});
    const auto add = [&](RowKind kind, std::string_view name, std::string_view pattern,
                         std::string_view meaning) {
      if (const std::size_t rows = count(kind); rows > 0) {
        made.rows.push_back(
            {std::string(name), std::to_string(rows), std::string(pattern), std::string(meaning)});
      }
    };
    add(RowKind::Node, "node", "NODE", "a node of the graph, with the shapes it reads and gives");
    add(RowKind::Stream, "stream", "NODE:Op",
        "the same node as its kernels on a GPU; tells the operator");
    add(RowKind::Feed, "feed", "_arg_NODE_PORT_NUMBER", "a value that the caller gave");
    add(RowKind::Fetch, "fetch", "_retval_NODE_PORT_NUMBER", "a value that the caller asked for");
    add(RowKind::Note, "note", "NODE:tenon=TEXT", "what the table itself does not tell of a node");
    add(RowKind::Copy, "copy", "edge_ID_NODE:MEMCPYkind", "a copy between devices");
  }

  void add_ops() {
    std::map<std::string, std::pair<std::size_t, std::int64_t>> ops;
    for (const std::size_t at : step_.order) {
      auto& [nodes, bytes] = ops[step_.ops[at].empty() ? "(not told)" : step_.ops[at]];
      ++nodes;
      if (is_compute(table_, step_, at)) bytes += bytes_moved(table_.rows[at]);
    }
    std::vector<std::pair<std::string, std::pair<std::size_t, std::int64_t>>> sorted(ops.begin(),
                                                                                     ops.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second.second > b.second.second;
    });
    auto& made =
        section("Operators", "By bytes read and written; constants and variables move nothing.",
                {"operator", ">nodes", ">bytes moved"});
    for (const auto& [op, counts] : sorted) {
      made.rows.push_back(
          {op, std::to_string(counts.first),
           Page::Cell(bytes_text(counts.second), static_cast<double>(counts.second))});
    }
  }

  // Operands of a row, traced through the optimiser's transposes, without folded shapes and
  // permutations.
  std::string sources_text(std::size_t at) const {
    std::string text;
    for (DataSource source : step_.sources[at]) {
      bool is_doubtful = source.evidence == Evidence::Chosen;
      if (source.row >= 0 && layout_transpose(row_of(source).node) &&
          !row_of(source).inputs.empty()) {
        source = step_.sources[static_cast<std::size_t>(source.row)][0];
        is_doubtful = is_doubtful || source.evidence == Evidence::Chosen;
      }
      const std::string name = source.row < 0 ? "?" : row_of(source).node;
      if (folded_shape(name) || permuted_constant(name)) continue;
      text += concat(text.empty() ? "" : ", ", name, is_doubtful ? "*" : "");
    }
    return text;
  }
  const Row& row_of(const DataSource& source) const {
    return table_.rows[static_cast<std::size_t>(source.row)];
  }

  std::string result_text(std::size_t at) const {
    std::string text;
    for (const TensorShape& output : table_.rows[at].outputs)
      text += (text.empty() ? "" : ", ") + to_string(output);
    if (layouts_[at] != ImageLayout::Unknown && !table_.rows[at].outputs.empty() &&
        table_.rows[at].outputs[0].extents.size() == 4) {
      text += concat(" ", layout_text(layouts_[at]));
    }
    if (const auto found = windows_.find(at); found != windows_.end()) {
      const Windows& windows = found->second;
      text += concat(", ", windows.kernel[0], "x", windows.kernel[1], "/", windows.strides[0],
                     windows.is_same ? " SAME" : " VALID");
    }
    return text;
  }

  void add_flow() {
    std::vector<std::size_t> nodes;
    for (const std::size_t at : step_.order) {
      if (is_compute(table_, step_, at) && !layout_transpose(table_.rows[at].node))
        nodes.push_back(at);
    }
    auto& made = section("Data flow",
                         "A table tells what is read by shape only; what is read here was found "
                         "from names, shapes and the "
                         "signatures of gradients (* several tensors fitted). Windows were solved "
                         "from shapes. What the "
                         "optimisers put in (transposes, shapes as constants) is left out.",
                         {"node", "operator", "reads", "gives", "device", ">bytes moved"});
    for (std::size_t k = 0; k < nodes.size() && k < max_rows; ++k) {
      const Row& row = table_.rows[nodes[k]];
      const std::string op = step_.ops[nodes[k]].empty() ? "?" : step_.ops[nodes[k]];
      made.rows.push_back(
          {row.node, op + (step_.is_op_assumed[nodes[k]] ? " (assumed)" : ""),
           sources_text(nodes[k]), result_text(nodes[k]), to_string(row.device),
           Page::Cell(bytes_text(bytes_moved(row)), static_cast<double>(bytes_moved(row)))});
    }
    if (nodes.size() > max_rows)
      made.rows.push_back({concat("… and ", nodes.size() - max_rows, " more")});
  }

  bool is_lrn(std::size_t at) const { return step_.ops[at] == "LRN" || step_.ops[at] == "LRNGrad"; }

  // Reason that the optimiser kept a transpose.
  std::string reason_of_transpose(std::size_t at) const {
    constexpr std::string_view lrn = "around LRN, which has NHWC kernels only";
    if (layout_transpose(table_.rows[at].node)->to_nchw) {
      const std::int64_t source = step_.sources[at].empty() ? -1 : step_.sources[at][0].row;
      if (source < 0) return "what it reads is NHWC";
      if (is_lrn(static_cast<std::size_t>(source))) return std::string(lrn);
      const bool computes = is_compute(table_, step_, static_cast<std::size_t>(source));
      return computes ? "what it reads is NHWC" : "images are kept as NHWC";
    }
    bool all_fetched = true;
    for (const std::size_t reader : readers_[at]) {
      if (is_lrn(reader)) return std::string(lrn);
      all_fetched = all_fetched && fetched_.contains(table_.rows[reader].node);
    }
    if (readers_[at].empty()) return "its result is given as NHWC";
    return all_fetched ? "in front of fetched gradients, whose nodes are kept as they are"
                       : "its reader wants NHWC";
  }

  void add_transposes() {
    struct Kind {
      std::size_t to_first = 0, to_last = 0;
      std::int64_t bytes = 0;
    };
    std::map<std::string, Kind> kinds;
    Kind total;
    for (const std::size_t at : step_.order) {
      const Row& row = table_.rows[at];
      const auto transpose = layout_transpose(row.node);
      if (!transpose) continue;
      for (Kind* kind : {&kinds[reason_of_transpose(at)], &total}) {
        ++(transpose->to_nchw ? kind->to_first : kind->to_last);
        kind->bytes += bytes_moved(row);
      }
    }
    if (kinds.empty()) return;
    auto& made = section(
        "Transposes of the layout optimiser",
        concat("On a GPU it turns images to NCHW, which cuDNN wants, and puts transposes where "
               "something "
               "wants NHWC: ",
               total.to_first + total.to_last, " of them, ", total.to_first, " to NCHW and ",
               total.to_last, " to NHWC, move ", in_gigabytes(total.bytes), "."),
        {"because", ">to NCHW", ">to NHWC", ">bytes moved"});
    for (const auto& [reason, kind] : kinds) {
      made.rows.push_back({reason, std::to_string(kind.to_first), std::to_string(kind.to_last),
                           Page::Cell(in_gigabytes(kind.bytes), static_cast<double>(kind.bytes))});
    }
  }

  void add_copies() {
    std::int64_t total = 0;
    std::vector<std::vector<Page::Cell>> rows;
    for (const Row& row : table_.rows) {
      if (row.kind != RowKind::Copy) continue;
      total += *row.bytes;
      rows.push_back({row.node, std::string(copy_word(row.copy)), to_string(row.device),
                      std::to_string(*row.bytes)});
    }
    if (rows.empty()) return;
    auto& made = section("Copies between devices",
                         concat(rows.size(), " copies, ", total, " bytes (H: host, D: device)."),
                         {"of", "kind", "device", ">bytes"});
    const std::size_t shown = std::min<std::size_t>(rows.size(), 20);
    made.rows.assign(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown));
    if (shown < rows.size()) made.rows.push_back({concat("… and ", rows.size() - shown, " more")});
  }

  void add_evidence() {
    std::map<Evidence, std::size_t> counts;
    std::string chosen, missing;
    std::size_t listed = 0;
    for (const std::size_t at : step_.order) {
      for (std::size_t input = 0; input < step_.sources[at].size(); ++input) {
        const DataSource& source = step_.sources[at][input];
        ++counts[source.evidence];
        const bool is_doubtful =
            source.evidence == Evidence::Chosen || source.evidence == Evidence::None;
        if (!is_doubtful || ++listed > 10) continue;
        const std::string place = concat("input ", input, " of ", table_.rows[at].node);
        if (source.evidence == Evidence::Chosen) {
          chosen +=
              concat("\n  ", place, ": ", table_.rows[static_cast<std::size_t>(source.row)].node,
                     ", of ", source.candidates, " that have the shape");
        } else {
          missing += concat("\n  ", place, ": (", table_.rows[at].inputs[input],
                            ") becomes an input of the graph");
        }
      }
    }
    std::string text = concat("Inputs connected by names: ", counts[Evidence::Name],
                              "; by control edges: ", counts[Evidence::Control],
                              "; by gradients' signatures: ", counts[Evidence::Gradient],
                              "; as the only tensor of the shape: ", counts[Evidence::OnlyOne],
                              "; chosen: ", counts[Evidence::Chosen],
                              "; not found: ", counts[Evidence::None], ".");
    section("How the data flow was found", text + chosen + missing, {});
  }

  void add_legend() {
    auto& made = section("Legend", "", {"text", "meaning"});
    made.rows = {
        {"node, inputs, outputs, type, number", "the fields; rows are sorted by name"},
        {"(128x64x56x56)", "a float32 tensor, slowest axis first"},
        {"(int32 4x1)", "another element type; a vector of 4, as 1-D shapes get x1"},
        {"(1)", "as the only input: the node reads nothing; elsewhere a scalar"},
        {"^NODE", "a control edge: run after NODE, nothing is read"},
        {"(no input), (no output)", "the row tells none"},
        {"X/read", "the Identity through which variable X is read"},
        {"gradients/X_grad/…", "the gradient of node X"},
        {"ConstantFolding/X-matshapes-K", "output K of a shape node that became a constant"},
        {"X-I-TransposeNHWCToNCHW-…", "a transpose in front of input I of X"},
        {"X-O-I-TransposeNCHWToNHWC-…", "one after X, for input I of a reader"}};
  }

  const TensorScopeTable& table_;
  const DataFlow& step_;
  std::string_view source_;
  std::vector<ImageLayout> layouts_;
  std::map<std::size_t, Windows> windows_;
  std::vector<std::vector<std::size_t>> readers_;
  std::set<std::string_view> fetched_;
  Page page_;
};

}  // namespace

std::int64_t bytes_moved(const Row& row) {
  std::int64_t bytes = 0;
  // Saturates: a table may claim impossible sizes.
  const auto add = [&](const TensorShape& shape) {
    if (__builtin_add_overflow(bytes, shape.byte_count(), &bytes)) bytes = INT64_MAX;
  };
  for (const TensorShape& input : row.inputs) add(input);
  for (const TensorShape& output : row.outputs) add(output);
  return bytes;
}

Page describe_table(const TensorScopeTable& table, const DataFlow& step, std::string_view source) {
  return TableDescriber(table, step, source).page();
}

}  // namespace tenon::documents::tensorscope
