// In-place operators: views of a written tensor are computed again when they are read, and a write
// to a view is written back to its base.
#include "base/error.h"
#include "frontends/torch/argument.h"
#include "frontends/torch/importer.h"
#include "ops/definition/var_ops.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::frontends::torch {
namespace {

constexpr int kMaxViews = 1000;

const std::unordered_set<std::string_view>& reshaping_views() {
  static const std::unordered_set<std::string_view> names = {
      "alias",     "detach",  "detach_",   "view",    "reshape",   "flatten",
      "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as"};
  return names;
}

const std::unordered_set<std::string_view>& other_views() {
  static const std::unordered_set<std::string_view> names = {
      "permute", "transpose",        "t",     "select", "slice",  "narrow",
      "split",   "split_with_sizes", "chunk", "unbind", "expand", "expand_as",
      "movedim", "diagonal",         "unfold"};
  return names;
}

// Returns the base with the elements [start, start + count) along an axis replaced.
Var spliced(const NodeImport& node, Var base, Var part, std::size_t axis, const Dim& start,
            const Dim& end) {
  const auto sliced = [&](const Dim& from, const Dim& to) {
    return node.call("slice", {base},
                     {{"starts", Dims{from}},
                      {"ends", Dims{to}},
                      {"axes", Dims{static_cast<std::int64_t>(axis)}}});
  };
  const Dim extent = node.dims(base)[axis];
  std::vector<Var> parts;
  if (!(start == Dim(0))) parts.push_back(sliced(0, start));
  parts.push_back(part);
  if (!(end == extent)) parts.push_back(sliced(end, extent));
  if (parts.size() == 1) return part;
  return node.call("concat", parts, {{"axis", Dim(static_cast<std::int64_t>(axis))}});
}

}  // namespace

const TensorType& TorchImporter::type_named(const std::string& name) const {
  const auto found = scope_->types.find(name);
  if (found == scope_->types.end())
    throw Error("the program states no type of a value").got("'", name, "'");
  return found->second;
}

TorchImporter::Slot& TorchImporter::slot_named(const std::string& name) {
  const auto found = scope_->slots.find(name);
  if (found == scope_->slots.end())
    throw Error("the program does not define a value").got("'", name, "'");
  return found->second;
}

void TorchImporter::define(const std::string& name, Var value) {
  Slot& slot = scope_->slots[name];
  slot.value = value;
  ++slot.version;
}

void TorchImporter::note_view(const JsonReader& node, std::string_view op) {
  if (!reshaping_views().contains(op) && !other_views().contains(op)) return;
  const JsonReader self = node.member("inputs").elements().front().member("arg");
  const auto [kind, value] = tagged(self);
  if (kind != "as_tensor") return;
  const std::string& base = value.member("name").text();
  const auto note = [&](const std::string& name) {
    Slot& slot = slot_named(name);
    slot.base = base;
    slot.view_node = node;
    slot.base_version = slot_named(base).version;
  };
  for (const JsonReader& output : node.member("outputs").elements()) {
    const auto [out_kind, made] = tagged(output);
    if (out_kind == "as_tensor") note(made.member("name").text());
    if (out_kind != "as_tensors") continue;
    for (const JsonReader& each : made.elements()) note(each.member("name").text());
  }
}

Var TorchImporter::read(const std::string& name) {
  // From the view to its oldest base.
  std::vector<std::string> chain = {name};
  for (;;) {
    const auto slot = scope_->slots.find(chain.back());
    if (slot == scope_->slots.end() || !slot->second.value.is_valid())
      throw NotSupported{concat("nothing makes its operand '", chain.back(), "'")};
    if (slot->second.base.empty()) break;
    if (chain.size() > kMaxViews) throw NotSupported{"its operand is a view of too many"};
    chain.push_back(slot->second.base);
  }
  for (std::size_t k = chain.size() - 1; k-- > 0;) {
    Slot& slot = slot_named(chain[k]);
    const Slot& base = slot_named(chain[k + 1]);
    if (slot.base_version == base.version) continue;
    const std::uint64_t version = base.version;
    if (slot.view_node) {
      const JsonReader node = *slot.view_node;
      slot.base_version = version;  // Before the operands of the view are read.
      run_handler(node, node.member("target").text());
    } else {
      slot.value = base.value;
      slot.base_version = version;
      ++slot.version;
    }
  }
  return slot_named(name).value;
}

void TorchImporter::write(const std::string& name, Var value, const NodeImport& writer) {
  Slot& slot = slot_named(name);
  if (!slot.outer.empty()) throw NotSupported{concat("it updates ", slot.outer)};
  const std::string base = slot.base;
  if (!base.empty()) {
    const Var before = read(base);
    write(base, written_base(slot, before, value, writer), writer);
  }
  Slot& written = slot_named(name);
  written.value = value;
  ++written.version;
  if (!base.empty()) written.base_version = slot_named(base).version;
}

// Returns the base after a write to its view.
Var TorchImporter::written_base(const Slot& view, Var base, Var value, const NodeImport& writer) {
  if (!view.view_node) return value;
  const JsonReader& json = *view.view_node;
  std::string_view op = json.member("target").text();
  op = op.substr(std::string_view("torch.ops.aten.").size());
  op = op.substr(0, op.find('.'));
  const NodeImport node(*this, json, op, "");
  const Dims dims = node.dims(base);
  if (reshaping_views().contains(op)) return reshape_to(value, dims);
  if (op == "t" || op == "transpose") {
    const bool is_matrix = op == "t";
    if (is_matrix && dims.size() < 2) return value;
    return node.swapped(value, is_matrix ? 0 : node.axis("dim0", dims.size()),
                        is_matrix ? 1 : node.axis("dim1", dims.size()));
  }
  if (op == "permute") {
    const std::vector<std::int64_t> perm = node.axes("dims", dims.size());
    std::vector<std::int64_t> inverse(perm.size());
    for (std::size_t k = 0; k < perm.size(); ++k)
      inverse[static_cast<std::size_t>(perm[k])] = static_cast<std::int64_t>(k);
    return node.permuted(value, inverse);
  }
  if (op == "select") {
    const std::size_t axis = node.axis("dim", dims.size());
    Dim index = node.extent("index");
    if (index.is_constant() && index.constant() < 0) index = index + dims[axis];
    Dims one = dims;
    one[axis] = 1;
    return spliced(node, base, reshape_to(value, one), axis, index, index + 1);
  }
  if (op == "slice" && node.integer("step", 1) == 1) {
    const std::size_t axis = node.axis("dim", dims.size(), 0);
    Dim start = node.extent("start", Dim(0));
    if (start.is_constant() && start.constant() < 0) start = max(start + dims[axis], 0);
    return spliced(node, base, value, axis, start, start + node.dims(value)[axis]);
  }
  writer.unsupported(concat("it writes to a view made by '", op, "'"));
}

}  // namespace tenon::frontends::torch
