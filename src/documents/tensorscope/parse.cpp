#include "base/error.h"
#include "base/ready_order.h"
#include "base/text.h"
#include "base/text_place.h"
#include "documents/native_node.h"
#include "documents/tensorscope/names.h"
#include "documents/tensorscope/table.h"
#include "documents/tensorscope/tf_ops.h"

#include <algorithm>
#include <span>

namespace tenon::documents::tensorscope {
namespace {

constexpr std::size_t max_rank = 254;  // TensorFlow's
constexpr std::int64_t max_elements = std::int64_t{1} << 56;

// One field between two separators, with its position in the file.
struct RowField {
  std::string_view text;
  std::size_t offset = 0;
};

// A row whose shapes are not yet split into inputs and outputs.
struct UnsplitRow {
  Row row;
  std::vector<TensorShape> before, behind;  // the last control edge
  bool has_no_output = false;
  std::vector<std::size_t> control_offsets;
  std::size_t offset = 0;
};

bool may_be_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_./\\->^").find(c) != std::string_view::npos;
}

// Decodes "%20" and "%25", escapes of field separators in notes.
std::string unescaped(std::string_view text) {
  std::string made;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const std::string_view code = text.substr(k, 3);
    const bool is_code = code == "%20" || code == "%25";
    made += is_code ? (code == "%20" ? ' ' : '%') : text[k];
    if (is_code) k += 2;
  }
  return made;
}

class TableParser {
 public:
  TableParser(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  TensorScopeTable parse() {
    std::size_t offset = 0;
    while (offset < text_.size()) {
      const std::size_t end = text_.find('\n', offset);
      if (end == std::string_view::npos) {
        throw error("the last row does not end", text_.size()).expected("a line feed");
      }
      read_row(text_.substr(offset, end - offset), offset);
      offset = end + 1;
    }
    if (rows_.empty()) throw error("the table has no rows", 0);
    require_order();
    TensorScopeTable table;
    for (UnsplitRow& row : rows_) table.rows.push_back(row.row);
    table.index();
    for (const Row& row : table.rows) {
      if (row.kind != RowKind::Fetch) continue;
      std::int64_t& count = output_counts_[row.node];
      count = std::max(count, std::min<std::int64_t>(row.port, 1 << 20) + 1);
    }
    for (std::size_t k = 0; k < rows_.size(); ++k) split_shapes(table, k);
    for (std::size_t k = 0; k < rows_.size(); ++k) require_names(table, k);
    require_no_circle(table);
    return table;
  }

 private:
  Error error(std::string_view summary, std::size_t offset) const {
    Error made{std::string(summary)};
    made.at(text_place(source_, text_, offset));
    return made;
  }

  std::vector<RowField> fields_of(std::string_view line, std::size_t offset) const {
    std::vector<RowField> fields;
    std::size_t start = 0;
    while (true) {
      const std::size_t end = line.find(", ", start);
      const std::size_t length = end == std::string_view::npos ? end : end - start;
      fields.push_back({line.substr(start, length), offset + start});
      if (fields.back().text.empty()) throw error("a field is empty", fields.back().offset);
      if (end == std::string_view::npos) return fields;
      start = end + 2;
    }
  }

  std::int64_t number(std::string_view digits, std::string_view what, std::size_t offset) const {
    const auto value = plain_number(digits);
    if (!value) {
      throw error(concat("not a number: ", what), offset)
          .expected("digits without sign or leading zeros, below 2^63")
          .got("'", digits, "'");
    }
    return *value;
  }

  void read_row(std::string_view line, std::size_t offset) {
    if (line.empty()) throw error("a line is empty", offset);
    if (line.back() == '\r') {
      throw error("a line ends in a carriage return", offset + line.size() - 1)
          .expected("a line feed alone");
    }
    const std::vector<RowField> fields = fields_of(line, offset);
    if (fields.size() < 5) {
      throw error("a row has too few fields", offset + line.size())
          .expected("node, inputs, outputs, device type, device number")
          .got(fields.size(), " fields");
    }
    UnsplitRow made;
    made.offset = offset;
    read_name(fields[0], made.row);
    const RowField& type = fields[fields.size() - 2];
    const bool is_type = std::all_of(type.text.begin(), type.text.end(),
                                     [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
    if (!is_type) {
      throw error("the device has no type", type.offset)
          .expected("CPU, GPU, …")
          .got("'", type.text, "'");
    }
    made.row.device = {std::string(type.text),
                       number(fields.back().text, "the device's index", fields.back().offset)};
    read_tensors(std::span(fields).subspan(1, fields.size() - 3), made);
    rows_.push_back(std::move(made));
  }

  void require_name(std::string_view name, std::size_t offset) const {
    if (name.empty()) throw error("a node has no name", offset);
    for (std::size_t k = 0; k < name.size(); ++k) {
      if (may_be_in_name(name[k])) continue;
      throw error("a node's name has a character that TensorFlow does not allow", offset + k)
          .expected("letters, digits, _ . / \\ - >");
    }
  }

  // "NODE_PORT_NUMBER" of a feed or fetch.
  void read_port(const RowField& field, std::size_t prefix, RowKind kind, Row& row) const {
    const std::string_view name = field.text.substr(prefix);
    const std::size_t last = name.rfind('_');
    const std::size_t first = last == std::string_view::npos || last == 0
                                  ? std::string_view::npos
                                  : name.rfind('_', last - 1);
    if (first == std::string_view::npos) {
      throw error("a feed or fetch does not tell its port and number", field.offset)
          .expected("_retval_NODE_PORT_NUMBER or _arg_NODE_PORT_NUMBER")
          .got(field.text);
    }
    row.kind = kind;
    row.node = name.substr(0, first);
    const std::size_t at = field.offset + prefix;
    row.port = number(name.substr(first + 1, last - first - 1), "the port", at + first + 1);
    row.number = number(name.substr(last + 1), "the number of the feed or fetch", at + last + 1);
    require_name(row.node, at);
  }

  void read_name(const RowField& field, Row& row) const {
    const std::string_view name = field.text;
    const std::size_t colon = name.find(':');
    if (colon == std::string_view::npos) {
      if (name.starts_with("_retval_")) return read_port(field, 8, RowKind::Fetch, row);
      if (name.starts_with("_arg_")) return read_port(field, 5, RowKind::Feed, row);
      row.node = name;
      return require_name(name, field.offset);
    }
    std::string_view node = name.substr(0, colon);
    const std::string_view op = name.substr(colon + 1);
    std::size_t at = field.offset;
    if (op.starts_with("MEMCPY")) {
      row.kind = RowKind::Copy;
      read_copy(op.substr(6), field.offset + colon + 7, row);
      if (node.starts_with("edge_")) {
        const std::size_t end = node.find('_', 5);
        if (end == std::string_view::npos) {
          throw error("a copy does not tell its node", field.offset)
              .expected("edge_NUMBER_NODE:MEMCPY…");
        }
        row.edge = number(node.substr(5, end - 5), "the edge of a copy", field.offset + 5);
        at += end + 1;
        node = node.substr(end + 1);
      }
    } else if (op.starts_with("tenon=")) {
      row.kind = RowKind::Note;
      row.op = unescaped(op.substr(6));
    } else {
      row.kind = RowKind::Stream;
      row.op = op;
      require_name(op, field.offset + colon + 1);
    }
    row.node = node;
    require_name(node, at);
  }

  void read_copy(std::string_view word, std::size_t offset, Row& row) const {
    for (const CopyKind kind :
         {CopyKind::HostToDevice, CopyKind::DeviceToHost, CopyKind::DeviceToDevice,
          CopyKind::PeerToPeer, CopyKind::HostToHost}) {
      if (copy_word(kind) != word) continue;
      row.copy = kind;
      return;
    }
    throw error("no copy is of that kind", offset)
        .expected("HtoD, DtoH, DtoD, PtoP or HtoH")
        .got("'", word, "'");
  }

  TensorShape read_shape(const RowField& field) const {
    std::string_view text = field.text;
    std::size_t at = field.offset;
    if (text.size() < 3 || text.front() != '(' || text.back() != ')') {
      throw error("not a shape", at)
          .expected("(128x64x56x56), (int32 4x1), (no input), …")
          .got("'", text, "'");
    }
    text = text.substr(1, text.size() - 2);
    ++at;
    TensorShape shape;
    if (const std::size_t space = text.find(' '); space != std::string_view::npos) {
      shape.element = text.substr(0, space);
      if (find_element(shape.element) == nullptr || shape.element == "float32") {
        throw error("no element type is written like that", at)
            .expected("TensorFlow's word for it, or nothing for float32")
            .got("'", shape.element, "'");
      }
      text = text.substr(space + 1);
      at += space + 1;
    }
    read_extents(text, at, shape);
    return shape;
  }

  void read_extents(std::string_view text, std::size_t at, TensorShape& shape) const {
    std::vector<std::int64_t>& extents = shape.extents;
    std::int64_t count = 1;
    std::size_t start = 0;
    while (true) {
      const std::size_t end = text.find('x', start);
      const std::size_t length = end == std::string_view::npos ? end : end - start;
      extents.push_back(number(text.substr(start, length), "an extent", at + start));
      if (extents.back() > max_elements || extents.size() > max_rank ||
          count > max_elements / std::max<std::int64_t>(extents.back(), 1)) {
        throw error("a shape is too large", at + start)
            .expected("at most 2^56 elements in 254 axes");
      }
      count *= std::max<std::int64_t>(extents.back(), 1);
      if (end == std::string_view::npos) break;
      start = end + 1;
    }
    if (extents.size() == 1) {
      if (extents[0] != 1) {
        throw error("a shape has a single extent", at)
            .expected("(1) for a scalar, (", extents[0], "x1) for a vector")
            .got("(", extents[0], ")");
      }
      extents.clear();
    } else if (extents.size() == 2 && extents[1] == 1) {
      extents.pop_back();
    }
  }

  void read_tensors(std::span<const RowField> fields, UnsplitRow& made) const {
    Row& row = made.row;
    for (std::size_t k = 0; k < fields.size(); ++k) {
      const RowField& field = fields[k];
      const bool is_last = k + 1 == fields.size();
      if (field.text.front() == '^') {
        if (!made.behind.empty()) {
          throw error("a control edge follows a shape after another one", field.offset)
              .expected("inputs of data, control edges, outputs");
        }
        require_name(field.text.substr(1), field.offset + 1);
        row.controls.emplace_back(field.text.substr(1));
        made.control_offsets.push_back(field.offset + 1);
      } else if (field.text == "(no input)") {
        if (k != 0) throw error("(no input) follows another input", field.offset);
        row.tells_inputs = false;
      } else if (field.text == "(no output)") {
        if (!is_last) throw error("(no output) is not the last of the row's tensors", field.offset);
        made.has_no_output = true;
      } else if (field.text.starts_with("(output ")) {
        if (!is_last) throw error("bytes are not the last of the row's tensors", field.offset);
        read_bytes(field, row);
      } else {
        (row.controls.empty() ? made.before : made.behind).push_back(read_shape(field));
      }
    }
    require_form(made);
  }

  void read_bytes(const RowField& field, Row& row) const {
    constexpr std::string_view suffix = " bytes)";
    if (!field.text.ends_with(suffix) || field.text.size() <= 8 + suffix.size()) {
      throw error("not a count of bytes", field.offset)
          .expected("(output N bytes)")
          .got("'", field.text, "'");
    }
    row.bytes = number(field.text.substr(8, field.text.size() - 8 - suffix.size()),
                       "the bytes of a copy", field.offset + 8);
  }

  // Requires the fields of the row's kind.
  void require_form(const UnsplitRow& made) const {
    const Row& row = made.row;
    const std::size_t shapes = made.before.size() + made.behind.size();
    const auto refuse = [&](std::string_view what, std::string_view expected) {
      throw error(what, made.offset).expected(expected);
    };
    const bool has_no_output = made.has_no_output || row.bytes.has_value();
    if (made.has_no_output && row.bytes)
      refuse("a row has no output, and one of some bytes", "one of both");
    if (!row.controls.empty() && !row.tells_inputs)
      refuse("a row has no input and control edges", "one of both");
    switch (row.kind) {
      case RowKind::Stream:
      case RowKind::Note:
        if (row.tells_inputs || !made.has_no_output || shapes != 0) {
          refuse("a stream's row has tensors", "(no input), (no output)");
        }
        break;
      case RowKind::Copy:
        if (row.tells_inputs || !row.bytes || shapes != 0) {
          refuse("a copy does not just tell its bytes", "(no input), (output N bytes)");
        }
        break;
      case RowKind::Fetch:
        if (!row.tells_inputs || !made.has_no_output || shapes != 1 || !row.controls.empty()) {
          refuse("a fetch does not have one input", "(SHAPE), (no output)");
        }
        break;
      case RowKind::Feed:
        if (has_no_output || !row.controls.empty() ||
            made.before.size() != (row.tells_inputs ? 2u : 1u)) {
          refuse("a feed does not have one output", "(1), (SHAPE)");
        }
        break;
      case RowKind::Node:
        if (row.bytes) refuse("a node has bytes for an output", "a shape or (no output)");
        if (shapes == 0 && !made.has_no_output)
          refuse("a row has no outputs", "shapes or (no output)");
        if (!row.controls.empty() && made.behind.empty() && !made.has_no_output) {
          refuse("a row has no outputs", "shapes or (no output)");
        }
        if (made.has_no_output && !made.behind.empty())
          refuse("a row has outputs and none", "one of both");
        if (!row.tells_inputs && made.has_no_output && shapes != 0) {
          refuse("a row has outputs and none", "one of both");
        }
        if (row.tells_inputs && row.controls.empty() && shapes == 1 && !made.has_no_output) {
          refuse("a row does not tell its inputs", "(1) or (no input) where there are none");
        }
        break;
    }
  }

  void require_order() const {
    for (std::size_t k = 1; k < rows_.size(); ++k) {
      const std::string before = rows_[k - 1].row.name(), name = rows_[k].row.name();
      if (before == name) throw error(concat("two rows are called '", name, "'"), rows_[k].offset);
      if (name < before) {
        throw error("the rows are not sorted by name", rows_[k].offset)
            .expected("a name after '", before, "'")
            .got("'", name, "'");
      }
    }
  }

  // Splits shapes into inputs and outputs, which only control edges and the operator separate.
  void split_shapes(TensorScopeTable& table, std::size_t at) const {
    const UnsplitRow& given = rows_[at];
    Row& row = table.rows[at];
    std::vector<TensorShape> shapes = given.before;
    std::size_t input_count = shapes.size();
    const std::string_view stream = table.stream_op(row.node);
    const std::string_view op = stream.empty() ? op_in_name(row.node) : stream;
    const std::string_view note = table.note(row.name());
    const OpInfo* known = row.kind == RowKind::Node && note.empty() ? find_tf_op(op) : nullptr;
    const std::optional<Graph> own =
        is_own(note) ? std::optional(read_note(note, given)) : std::nullopt;
    if (!row.tells_inputs) {
      input_count = 0;
    } else if (own) {
      const std::size_t outputs = own->outputs().size();
      if (shapes.size() < std::max<std::size_t>(own->inputs().size(), 1) + outputs || outputs == 0)
        throw error("a note tells of more tensors than its row has", given.offset);
      input_count = shapes.size() - outputs;
    } else if (row.controls.empty() && !given.has_no_output) {
      const auto count = static_cast<std::int64_t>(shapes.size());
      std::int64_t outputs = known == nullptr ? fetched_outputs(row.node) : known->outputs;
      if (outputs < 0) outputs = count - known->inputs;
      if (known != nullptr && known->op_class == OpClass::Source)
        outputs = count - 1;  // after "(1)"
      input_count =
          static_cast<std::size_t>(count - std::clamp<std::int64_t>(outputs, 1, count - 1));
    }
    const auto split = shapes.begin() + static_cast<std::ptrdiff_t>(input_count);
    row.outputs.assign(split, shapes.end());
    row.outputs.insert(row.outputs.end(), given.behind.begin(), given.behind.end());
    shapes.erase(split, shapes.end());
    // A lone "(1)" is a scalar only for an operator with operands.
    const bool reads = own                ? !own->inputs().empty()
                       : !note.empty()    ? false
                       : known != nullptr ? known->inputs != 0
                                          : !stream.empty();
    const bool is_marker = row.controls.empty() && shapes.size() == 1 &&
                           shapes[0] == TensorShape{} && !reads && row.kind != RowKind::Fetch;
    if (!is_marker) row.inputs = std::move(shapes);
    if (row.kind == RowKind::Feed && !row.inputs.empty()) {
      throw error("a feed reads something", given.offset).expected("(1), (SHAPE)");
    }
  }

  Graph read_note(std::string_view note, const UnsplitRow& row) const {
    try {
      return parse_native(note);
    } catch (const Error& failure) {
      throw error(concat("a note is not an operator of Tenon's: ", failure.summary()), row.offset);
    }
  }

  // A node has at least the outputs that are fetched.
  std::int64_t fetched_outputs(const std::string& node) const {
    const auto found = output_counts_.find(node);
    return found == output_counts_.end() ? 1 : found->second;
  }

  void require_names(const TensorScopeTable& table, std::size_t at) const {
    const UnsplitRow& given = rows_[at];
    const Row& row = table.rows[at];
    for (std::size_t k = 0; k < row.controls.size(); ++k) {
      if (table.find_node(row.controls[k]) >= 0) continue;
      throw error(concat("a control edge comes from '", row.controls[k],
                         "', which is no node of the table"),
                  given.control_offsets[k]);
    }
    if (row.kind == RowKind::Node || row.kind == RowKind::Feed) return;
    if (table.find_node(row.node) < 0) {
      const std::string_view what = row.kind == RowKind::Fetch    ? "a fetch"
                                    : row.kind == RowKind::Stream ? "a stream's row"
                                    : row.kind == RowKind::Note   ? "a note"
                                                                  : "a copy";
      throw error(concat(what, " is of '", row.node, "', which is no node of the table"),
                  given.offset);
    }
  }

  void require_no_circle(const TensorScopeTable& table) const {
    std::vector<ReadyTask> tasks(table.rows.size());
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      for (const std::string& control : table.rows[k].controls)
        tasks[k].needs.push_back(static_cast<std::uint32_t>(table.find_node(control)));
    }
    std::vector<bool> runs(tasks.size());
    for (const std::uint32_t k : ready_order(tasks).sequence) runs[k] = true;
    const auto stuck = std::find(runs.begin(), runs.end(), false);
    if (stuck == runs.end()) return;
    const auto k = static_cast<std::size_t>(stuck - runs.begin());
    throw error("control edges run in a circle", rows_[k].control_offsets.front())
        .got("'", table.rows[k].node, "' would never run");
  }

  std::string_view text_, source_;
  std::vector<UnsplitRow> rows_;
  std::unordered_map<std::string, std::int64_t> output_counts_;
};

}  // namespace

TensorScopeTable parse_table(std::string_view text, std::string_view source) {
  return TableParser(text, source).parse();
}

}  // namespace tenon::documents::tensorscope
