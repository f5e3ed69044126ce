// Hostile files and texts. Each must end in an Error with a reason: never in another exception, in
// a crash, or in an allocation for data that the file does not contain.
#include "frontends/numpy/npy.h"
#include "frontends/numpy/npz.h"
#include "models/inputs.h"
#include "models/model.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "unit/frontends/onnx_model.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

namespace tenon::frontends::onnx::testing_models::hostile_test {
namespace {

namespace fs = std::filesystem;
using onnx_schema::AttributeProto;

constexpr std::int64_t kHuge = std::int64_t{1} << 50;
constexpr std::int64_t kWhole = INT64_MAX;

struct Hostile {
  std::string name;
  std::function<void()> read;
  /// a part of the message
  std::string says;
};

void run(const Graph& graph) { reference::evaluate(graph, models::random_inputs(graph, 1)); }

/// A model with an input x: f32[2] and an output y; `edit` makes the rest.
std::function<void()> model(std::function<void(ModelProto&, GraphProto&)> edit, int opset = 17) {
  return [=] {
    ModelProto made = new_model(opset);
    add_input(*made.mutable_graph(), "x", {"2"});
    add_output(*made.mutable_graph(), "y");
    edit(made, *made.mutable_graph());
    run(import_model(made));
  };
}

std::function<void()> graph(std::function<void(GraphProto&)> edit, int opset = 17) {
  return model([=](ModelProto&, GraphProto& made) { edit(made); }, opset);
}

std::function<void()> bytes(std::string content) {
  return [=] { import_onnx(std::as_bytes(std::span(content)), {}, "m.onnx"); };
}

std::function<void()> text(std::string content) {
  return [=] { run(parse_graph(content, all_ops())); };
}

TensorProto integers(const std::string& name, const std::vector<std::int64_t>& values) {
  TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(TensorProto::INT64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  tensor.mutable_int64_data()->Assign(values.begin(), values.end());
  return tensor;
}

TensorProto integer(const std::string& name, std::int64_t value) {
  TensorProto tensor = integers(name, {value});
  tensor.clear_dims();
  return tensor;
}

TensorProto raw(const std::vector<std::int64_t>& dims, std::size_t byte_count, int type = 1) {
  TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(type);
  for (std::int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_raw_data(std::string(byte_count, '\0'));
  return tensor;
}

std::function<void()> initializer(TensorProto tensor) {
  return graph([=](GraphProto& made) {
    *made.add_initializer() = tensor;
    add_node(made, "Identity", {"w"}, {"y"});
  });
}

/// A node whose inputs after x are initializers.
std::function<void()> node(std::string op_type, std::vector<TensorProto> inputs,
                           std::function<void(NodeProto&)> edit = {}, int opset = 17) {
  return graph(
      [=](GraphProto& made) {
        std::vector<std::string> names{"x"};
        for (const TensorProto& tensor : inputs) {
          *made.add_initializer() = tensor;
          names.push_back(tensor.name());
        }
        NodeProto& added = add_node(made, op_type, names, {"y"});
        if (edit) edit(added);
      },
      opset);
}

AttributeProto& add_attr(NodeProto& node, const std::string& name,
                         AttributeProto::AttributeType type) {
  AttributeProto& attr = *node.add_attribute();
  attr.set_name(name);
  attr.set_type(type);
  return attr;
}

void set_integer(NodeProto& node, const std::string& name, std::int64_t value) {
  add_attr(node, name, AttributeProto::INT).set_i(value);
}

void set_integers(NodeProto& node, const std::string& name,
                  const std::vector<std::int64_t>& values) {
  add_attr(node, name, AttributeProto::INTS).mutable_ints()->Assign(values.begin(), values.end());
}

void set_text(NodeProto& node, const std::string& name, const std::string& value) {
  add_attr(node, name, AttributeProto::STRING).set_s(value);
}

/// Sets an attribute to a graph without inputs and with `outputs` constant outputs.
void set_branch(NodeProto& node, const std::string& name, std::size_t outputs) {
  GraphProto& branch = *add_attr(node, name, AttributeProto::GRAPH).mutable_g();
  for (std::size_t k = 0; k < outputs; ++k) {
    const std::string output = name + std::to_string(k);
    add_node(branch, "Identity", {"x"}, {output});
    add_output(branch, output);
  }
}

/// A model with weights in an external file, in a folder that contains a link to a file outside.
std::function<void()> external(std::vector<std::pair<std::string, std::string>> entries,
                               std::int64_t count = 2) {
  return [=] {
    const fs::path top = fs::path(::testing::TempDir()) / "tenon_hostile";
    fs::remove_all(top);
    fs::create_directories(top / "model");
    std::ofstream(top / "secret", std::ios::binary) << std::string(8, 's');
    std::ofstream(top / "model/w.bin", std::ios::binary) << std::string(8, 'w');
    fs::create_symlink(top / "secret", top / "model/link");
    ModelProto made = new_model();
    TensorProto tensor = raw({count}, 0);
    tensor.clear_raw_data();
    tensor.set_data_location(TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      tensor.add_external_data()->set_key(key);
      tensor.mutable_external_data()->rbegin()->set_value(value);
    }
    *made.mutable_graph()->add_initializer() = tensor;
    add_node(*made.mutable_graph(), "Identity", {"w"}, {"y"});
    add_output(*made.mutable_graph(), "y");
    std::ofstream(top / "model/m.onnx", std::ios::binary) << made.SerializeAsString();
    import_onnx((top / "model/m.onnx").string());
  };
}

std::string npy(const std::string& header, const std::string& data = "", int claimed = -1) {
  const std::size_t length = claimed < 0 ? header.size() : static_cast<std::size_t>(claimed);
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(length & 255) +
         static_cast<char>(length >> 8) + header + data;
}

std::function<void()> array(std::string content) {
  return [=] { frontends::numpy::read_npy(std::as_bytes(std::span(content))); };
}

std::function<void()> archive(std::string content) {
  return [=] { frontends::numpy::read_npz(std::as_bytes(std::span(content))); };
}

std::string described(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + "}";
}

/// `--shapes` and `--input` for a graph with an input x: f32[N, 2].
std::function<void()> arguments(std::vector<std::string> shapes, std::vector<std::string> inputs) {
  return [=] {
    const Graph made = parse_graph("graph (x: f32[N, 2]) { y = relu(x) return y }", all_ops());
    reference::evaluate(made, models::read_inputs(made, inputs, models::parse_shapes(shapes)));
  };
}

// Two functions that call each other.
void add_cycle(ModelProto& made, GraphProto& main) {
  for (const std::string name : {"A", "B"}) {
    onnx_schema::FunctionProto& function = *made.add_functions();
    function.set_domain("local");
    function.set_name(name);
    function.add_input("in");
    function.add_output("out");
    add_node(function, name == "A" ? "B" : "A", {"in"}, {"out"}).set_domain("local");
  }
  add_node(main, "A", {"x"}, {"y"}).set_domain("local");
}

// Each loop changes the shape of its carried value, which makes type inference visit its body more
// than once, and nested loops multiply the visits.
void add_nested_loops(GraphProto& main) {
  GraphProto body;
  const auto begin_body = [](GraphProto& made) {
    add_input(made, "i", {}, TensorProto::INT64);
    add_input(made, "go", {}, TensorProto::BOOL);
    made.add_input()->set_name("v");
    add_node(made, "Identity", {"go"}, {"go_on"});
    add_output(made, "go_on");
    add_output(made, "grown");
  };
  begin_body(body);
  add_node(body, "Concat", {"v", "v"}, {"grown"}).add_attribute()->set_name("axis");
  body.mutable_node(1)->mutable_attribute(0)->set_type(AttributeProto::INT);
  for (int depth = 0; depth < 40; ++depth) {
    GraphProto outer;
    begin_body(outer);
    NodeProto& loop = add_node(outer, "Loop", {"", "go", "v"}, {"inner"});
    *add_attr(loop, "body", AttributeProto::GRAPH).mutable_g() = std::move(body);
    set_integer(add_node(outer, "Concat", {"inner", "v"}, {"grown"}), "axis", 0);
    body = std::move(outer);
  }
  NodeProto& loop = add_node(main, "Loop", {"", "", "x"}, {"z"});
  *add_attr(loop, "body", AttributeProto::GRAPH).mutable_g() = std::move(body);
  add_node(main, "Relu", {"ghost"}, {"y"});  // ends in an error after the bodies are imported
}

// Values in functions are prefixed with the names of the enclosing calls: a long name times a great
// number of values.
void add_long_names(ModelProto& made, GraphProto& main) {
  for (const std::string name : {"Inner", "Outer"}) {
    onnx_schema::FunctionProto& function = *made.add_functions();
    function.set_domain("local");
    function.set_name(name);
    function.add_input("v0");
    function.add_output("v150");
    for (int k = 0; k < 150; ++k) {
      add_node(function, name == "Inner" ? "Relu" : "Inner", {"v" + std::to_string(k)},
               {"v" + std::to_string(k + 1)})
          .set_domain(name == "Inner" ? "" : "local");
    }
  }
  add_node(main, "Outer", {"x"}, {"z"}, std::string(1 << 20, 'n')).set_domain("local");
  add_node(main, "Relu", {"ghost"}, {"y"});  // ends in an error after the calls are inlined
}

const std::vector<Hostile>& hostile_models() {
  static const std::vector<Hostile> rows = {
      {"garbage", bytes(std::string("\x07\xff\x00\x13garbage\xfe\xfe", 14)), "not an ONNX model"},
      // Field 7, the graph, as a number, and as a message that claims 2^34 bytes.
      {"graph_of_wrong_wire_type", bytes("\x08\x08\x38\x01"), "not an ONNX model"},
      {"graph_longer_than_file", bytes("\x08\x08\x3a\xff\xff\xff\xff\x3f"), "not an ONNX model"},
      {"endless_varint", bytes(std::string(64, '\x80')), "not an ONNX model"},
      {"unclosed_group", bytes("\x08\x08\x3b\x3b\x3b\x3b"), "not an ONNX model"},
      {"no_graph", [] { ModelProto made = new_model(); made.clear_graph(); import_model(made); },
       "not an ONNX model"},

      {"extent_past_all", graph([](GraphProto& g) { add_input(g, "h", {"9223372036854775807"}); }),
       "an extent is too large"},
      {"input_larger_than_memory",
       graph([](GraphProto& g) {
         add_input(g, "h", {std::to_string(kHuge)});
         add_node(g, "Relu", {"h"}, {"y"});
       }),
       "out of memory"},
      {"input_count_overflows",
       graph([](GraphProto& g) {
         add_input(g, "h", {std::to_string(kHuge), std::to_string(kHuge)});
         add_node(g, "Relu", {"h"}, {"y"});
       }),
       "too many elements"},
      {"unknown_input_type", graph([](GraphProto& g) { add_input(g, "h", {"1"}, 77); }),
       "no element type has the number 77"},

      {"initializer_with_negative_extent", initializer(raw({-2}, 8)), "an extent is negative"},
      {"initializer_count_overflows", initializer(raw({kWhole, kWhole, 4}, 8)), "too many elements"},
      {"initializer_cut_short", initializer(raw({4}, 15)), "does not fill its shape"},
      {"initializer_too_long", initializer(raw({4}, 17)), "does not fill its shape"},
      {"initializer_claims_gigabyte", initializer(raw({1 << 28}, 4)), "does not fill its shape"},
      {"initializer_of_unknown_type", initializer(raw({1}, 4, 999)), "no element type"},
      {"initializer_of_negative_type", initializer(raw({1}, 4, -1)), "no element type"},
      {"initializer_given_twice",
       graph([](GraphProto& g) {
         *g.add_initializer() = floats("w", {1});
         *g.add_initializer() = floats("w", {2});
       }),
       "two values are called 'w'"},
      {"initializer_without_name", graph([](GraphProto& g) { *g.add_initializer() = floats("", {1}); }),
       "a value has no name"},
      {"strings_of_wrong_count", graph([](GraphProto& g) {
         TensorProto& tensor = *g.add_initializer();
         tensor = raw({3}, 0, TensorProto::STRING);
         tensor.clear_raw_data();
         tensor.add_string_data("one");
       }),
       "does not fill its shape"},
      {"sparse_index_outside",
       graph([](GraphProto& g) {
         auto& sparse = *g.add_sparse_initializer();
         *sparse.mutable_values() = floats("w", {1});
         *sparse.mutable_indices() = integers("", {10});
         sparse.add_dims(10);
       }),
       "sparse initializer 'w'"},

      {"external_above", external({{"location", "../../x"}}), "has '..' in it"},
      {"external_absolute", external({{"location", "/etc/hostname"}}), "the path is absolute"},
      {"external_link_out", external({{"location", "link"}}), "symbolic link leads out"},
      {"external_missing", external({{"location", "none.bin"}}), "No such file"},
      {"external_offset_past_end", external({{"location", "w.bin"}, {"offset", "4096"}}),
       "lies outside the file"},
      {"external_negative_offset", external({{"location", "w.bin"}, {"offset", "-8"}}),
       "not a number of bytes"},
      {"external_negative_length", external({{"location", "w.bin"}, {"length", "-8"}}),
       "not a number of bytes"},
      {"external_gigabyte_of_eight_bytes",
       external({{"location", "w.bin"}, {"length", "1073741824"}}, 1 << 28),
       "lies outside the file"},
      {"external_is_the_folder", external({{"location", "."}}), "folder"},

      {"reads_unknown_value", graph([](GraphProto& g) { add_node(g, "Relu", {"ghost"}, {"y"}); }),
       "nothing makes 'ghost'"},
      {"node_cycle", graph([](GraphProto& g) {
         add_node(g, "Add", {"x", "b"}, {"a"});
         add_node(g, "Relu", {"a"}, {"b"});
       }),
       "the nodes form a cycle"},
      {"output_given_twice", graph([](GraphProto& g) { add_node(g, "Dropout", {"x"}, {"y", "y"}); }),
       "two values are called 'y'"},
      {"output_without_name",
       graph([](GraphProto& g) {
         add_node(g, "Relu", {"x"}, {"y"});
         add_output(g, "");
       }),
       "nothing makes the output ''"},
      {"required_output_left_out",
       graph([](GraphProto& g) { add_node(g, "Relu", {"x"}, {""}); }), "nothing makes the output 'y'"},
      {"required_input_left_out", graph([](GraphProto& g) { add_node(g, "Relu", {}, {"y"}); }),
       "input 0 is missing"},
      {"opset_negative", model([](ModelProto& m, GraphProto&) {
         m.mutable_opset_import(0)->set_version(-3);
       }),
       "opset version -3 is not known"},
      {"opset_of_the_far_future", model([](ModelProto& m, GraphProto&) {
         m.mutable_opset_import(0)->set_version(kWhole);
       }),
       "is not known"},
      {"opset_missing", model([](ModelProto& m, GraphProto& g) {
         m.clear_opset_import();
         add_node(g, "Relu", {"x"}, {"y"});
       }),
       "imports no opset"},

      {"functions_in_a_circle", model(add_cycle), "calls itself"},
      {"function_names_multiply", model(add_long_names), "nothing makes 'ghost'"},
      {"nested_loops_multiply", graph(add_nested_loops), "nothing makes 'ghost'"},
      {"constant_without_value", graph([](GraphProto& g) { add_node(g, "Constant", {}, {"y"}); }),
       "the constant has no value"},
      {"attribute_of_wrong_kind",
       node("Softmax", {}, [](NodeProto& n) { set_text(n, "axis", "last"); }),
       "attribute 'axis' is not an integer"},
      {"attribute_missing", node("Concat", {}), "attribute 'axis' is missing"},
      {"attribute_refers_to_nothing", node("Softmax", {}, [](NodeProto& n) {
         add_attr(n, "axis", AttributeProto::INT).set_ref_attr_name("axis");
       }),
       "is in none"},
      {"cast_to_unknown_type", node("Cast", {}, [](NodeProto& n) { set_integer(n, "to", 1 << 30); }),
       "names no element type"},
      {"branches_that_differ", graph([](GraphProto& g) {
         add_input(g, "c", {}, TensorProto::BOOL);
         NodeProto& n = add_node(g, "If", {"c"}, {"y"});
         set_branch(n, "then_branch", 1);
         set_branch(n, "else_branch", 2);
       }),
       "if: "},
      {"branch_missing", graph([](GraphProto& g) {
         add_input(g, "c", {}, TensorProto::BOOL);
         set_branch(add_node(g, "If", {"c"}, {"y"}), "then_branch", 1);
       }),
       "attribute 'else_branch' is missing"},
      {"loop_without_body", graph([](GraphProto& g) { add_node(g, "Loop", {"", "", "x"}, {"y"}); }),
       "attribute 'body' is missing"},
      {"loop_with_empty_body", graph([](GraphProto& g) {
         set_branch(add_node(g, "Loop", {"", "", "x"}, {"y"}), "body", 0);
       }),
       "too few outputs"},
      {"scan_of_more_than_it_has", node("Scan", {}, [](NodeProto& n) {
         set_branch(n, "body", 1);
         set_integer(n, "num_scan_inputs", kWhole);
       }),
       "num_scan_inputs does not fit"},

      {"reshape_to_minus_two", node("Reshape", {integers("s", {-2})}), "reshape: "},
      {"reshape_overflows", node("Reshape", {integers("s", {kWhole, kWhole, -1})}), "extent overflows"},
      {"reshape_to_texts", graph([](GraphProto& g) {
         TensorProto& tensor = *g.add_initializer();
         tensor.set_name("s");
         tensor.set_data_type(TensorProto::STRING);
         tensor.add_dims(1);
         tensor.add_string_data("two");
         add_node(g, "Reshape", {"x", "s"}, {"y"});
       }),
       "cannot read a string as a number"},
      {"reshape_to_millions_of_axes", graph([](GraphProto& g) {
         *g.add_initializer() = integers("n", {std::int64_t{1} << 31});
         add_node(g, "ConstantOfShape", {"n"}, {"s"});
         add_node(g, "Reshape", {"x", "s"}, {"y"});
       }),
       "too many elements"},
      {"expand_overflows", node("Expand", {integers("s", {kHuge, kHuge, 2})}), "expand: the result has too many elements"},
      {"tile_absurdly", node("Tile", {integers("r", {kHuge})}), "out of memory"},
      {"tile_overflows", node("Tile", {integers("r", {kWhole})}), "extent overflows"},
      {"tile_negatively", node("Tile", {integers("r", {-1})}), "tile: a repeat is negative"},
      {"old_tile_along_no_axis", node("Tile", {integers("n", {2}), integers("a", {7})}, {}, 5),
       "axis"},
      {"old_tile_by_nothing", node("Tile", {integers("n", {}), integers("a", {})}, {}, 5),
       "must hold one element"},
      {"one_hot_of_huge_depth", graph([](GraphProto& g) {
         *g.add_initializer() = integers("i", {1});
         *g.add_initializer() = integer("depth", kHuge);
         *g.add_initializer() = floats("values", {0, 1});
         add_node(g, "OneHot", {"i", "depth", "values"}, {"y"});
       }),
       "out of memory"},
      {"constant_of_huge_shape", graph([](GraphProto& g) {
         *g.add_initializer() = integers("s", {kHuge});
         add_node(g, "ConstantOfShape", {"s"}, {"y"});
       }),
       "out of memory"},
      {"constant_of_negative_shape", graph([](GraphProto& g) {
         *g.add_initializer() = integers("s", {-5});
         add_node(g, "ConstantOfShape", {"s"}, {"y"});
       }),
       "an extent is negative"},
      {"range_without_end", graph([](GraphProto& g) {
         *g.add_initializer() = integer("a", 0);
         *g.add_initializer() = integer("b", kHuge);
         *g.add_initializer() = integer("c", 1);
         add_node(g, "Range", {"a", "b", "c"}, {"y"});
       }),
       "out of memory"},
      {"range_overflows", graph([](GraphProto& g) {
         *g.add_initializer() = integer("a", INT64_MIN);
         *g.add_initializer() = integer("b", kWhole);
         *g.add_initializer() = integer("c", 1);
         add_node(g, "Range", {"a", "b", "c"}, {"y"});
       }),
       "extent overflows"},
      {"range_by_nothing", graph([](GraphProto& g) {
         *g.add_initializer() = integer("a", 0);
         *g.add_initializer() = integer("b", 5);
         *g.add_initializer() = integer("c", 0);
         add_node(g, "Range", {"a", "b", "c"}, {"y"});
       }),
       "delta is 0"},
      {"split_into_billions", node("Split", {}, [](NodeProto& n) {
         set_integer(n, "num_outputs", kHuge);
       }, 18),
       "outputs"},
      {"pad_beyond_all", node("Pad", {integers("p", {kWhole, kWhole})}), "extent overflows"},
      {"cumsum_along_nothing", node("CumSum", {integers("a", {})}), "must hold one element"},
      {"transpose_along_missing_axes",
       node("Transpose", {}, [](NodeProto& n) { set_integers(n, "perm", {kWhole}); }), "transpose: "},
      {"gather_outside", node("Gather", {integers("i", {99})}), "an index lies outside"},
      {"conv_of_wrong_rank", node("Conv", {floats("w", {1})}), "conv: "},
      {"pool_over_nothing", node("MaxPool", {}, [](NodeProto& n) {
         set_integers(n, "kernel_shape", {0, -1});
       }),
       "max_pool: "},
      {"crop_overflows", node("Crop", {}, [](NodeProto& n) {
         set_integers(n, "border", {kWhole, kWhole, INT64_MIN, INT64_MIN});
         set_integers(n, "scale", {kWhole, kWhole});
       }, 9),
       "a border or window is no extent"},
      {"batch_norm_of_a_scalar", graph([](GraphProto& g) {
         add_input(g, "s", {});
         NodeProto& n = add_node(g, "BatchNormalization", {"s", "x", "x", "x", "x"}, {"y"});
         set_integer(n, "spatial", 0);
       }, 7),
       "no axes"},
      {"linear_attention_of_low_rank", graph([](GraphProto& g) {
         NodeProto& n = add_node(g, "LinearAttention", {"x", "x", "x", "", "x", "x"}, {"y"});
         set_integer(n, "q_num_heads", 1);
         set_integer(n, "kv_num_heads", 1);
       }, 26),
       "rank"},
      {"lstm_with_no_steps_known", node("LSTM", {floats("w", {1}), floats("r", {1})}),
       "inputs have the wrong rank"},
  };
  return rows;
}

std::string repeated(const std::string& part, int count) {
  std::string all;
  for (int k = 0; k < count; ++k) all += part;
  return all;
}

const std::vector<Hostile>& hostile_texts() {
  static const std::vector<Hostile> rows = {
      {"text_with_open_quote", text("graph (x: f32[2]) { metadata \"a\" = \"b"),
       "quote is not closed"},
      {"split_into_no_parts", text("graph (x: f32[n]) { split(x) return x }"), "zero"},
      {"text_with_unknown_escape", text("graph (\"\\q\": f32[2]) { return }"), "unknown escape"},
      {"text_of_deep_dims", text("graph (x: f32[" + repeated("(", 5000) + "1]) { return }"),
       "deep"},
      {"text_of_deep_optionals",
       text("graph (x: " + repeated("optional(", 5000) + "f32[]" + repeated(")", 5000) +
            ") { return }"),
       "deep"},
      {"text_of_many_elements", text("graph () { c = constant f32[999999999999] [1] return c }"),
       "number of elements"},
      {"text_splat_of_everything",
       text("graph () { c = constant f32[72057594037927936] splat 1 return c }"), "too many bytes"},
      {"text_splat_out_of_memory",
       text("graph () { c = constant f32[562949953421312] splat 1 return c }"), "out of memory"},
      {"text_symbol_overflows",
       text("graph <N in [0, 99999999999999999999]> (x: f32[N]) { return }"), "greatest value"},
      {"text_dim_overflows", text("graph (x: f32[N*9223372036854775807*4]) { return }"),
       "extent overflows"},
      {"text_dim_divides_by_zero", text("graph (x: f32[floor(N/0)]) { return }"),
       "divided by zero"},
      {"text_negative_dim", text("graph (x: f32[-4]) { return }"), "negative"},
      {"text_body_for_no_op",
       text("graph (x: f32[2]) { y = relu(x) then = graph () { return } return y }"),
       "there is no op 'graph'"},
      {"text_symbol_with_two_ranges", text("graph <N in [1, 2], N in [1, 3]> () { return }"),
       "two ranges"},
      {"text_reshape_by_splat",
       text("graph (x: f32[2]) { s = constant i64[1125899906842624] splat 1\n"
            "y = reshape(x, shape = s) return y }"),
       "out of memory"},
      {"text_transpose_by_splat",
       text("graph (x: f32[2]) { y = transpose(x) {perm = [9223372036854775807]} return y }"),
       "transpose: "},
      {"text_attribute_of_nulls", text(std::string("graph (x: f32[2]) { y = \0(x) return y }", 39)),
       "expected an op"},

      {"npy_header_past_end", array(npy("{", "", 60000)), "ends inside its header"},
      {"npy_negative_shape", array(npy(described("<f4", "(-3,)"))), "an extent is not a number"},
      {"npy_of_objects", array(npy(described("|O", "(1,)"), "12345678")), "Python objects"},
      {"npy_header_never_ends", array(npy("{'descr': '" + std::string(1000, '<'))), "npy: "},
      {"npy_deep_tuple", array(npy(described("<f4", std::string(50000, '(')))), "npy: "},
      {"npy_of_endless_items", array(npy(described("<f99999999999999999999", "(1,)"))), "npy: "},
      {"npz_with_directory_cut_off", archive("PK\5\6" + std::string(4, '\0') + "\1"), "cut short"},
      // The directory claims 65535 entries at the very end.
      {"npz_with_too_many_entries",
       archive(std::string("PK\5\6\0\0\0\0\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\0\0", 22)),
       "npz: "},

      {"shape_without_name", arguments({":2x2"}, {}), "cannot read a shape"},
      {"shape_with_negative_extent", arguments({"x:-1x2"}, {}), "cannot read an extent"},
      {"shape_that_overflows", arguments({"x:99999999999999999999x2"}, {}),
       "cannot read an extent"},
      {"shape_with_empty_extent", arguments({"x:1xx2"}, {}), "cannot read an extent"},
      {"shape_of_wrong_rank", arguments({"x:1x2x3"}, {}), "wrong rank"},
      {"shape_of_wrong_extent", arguments({"x:1x3"}, {}), "does not fit"},
      {"shape_of_no_input", arguments({"nobody:1x2"}, {}), "no input 'nobody'"},
      {"shape_larger_than_memory", arguments({"x:562949953421312x2"}, {}), "out of memory"},
      {"shape_of_too_many", arguments({"x:72057594037927936x2"}, {}), "too many"},
      {"input_of_no_kind", arguments({}, {"x:everything"}), "cannot read an input's description"},
      {"input_of_huge_seed", arguments({}, {"x:random:99999999999999999999"}),
       "cannot read an input's description"},
      {"input_of_missing_file", arguments({}, {"x:@nowhere/none.npy"}), "none.npy"},
      {"input_of_missing_archive", arguments({}, {"@nowhere/none.npz"}), "none.npz"},
      {"input_with_null_in_path", arguments({}, {std::string("x:@a\0b.npy", 10)}), "cannot open"},
      {"input_with_long_path", arguments({}, {"@" + std::string(100000, 'a')}), "cannot open"},
      {"model_with_long_path", [] { models::load_model(std::string(100000, 'a')); }, "cannot open"},
      {"zoo_of_huge_batch", [] { zoo::build("mlp?batch=99999999999999999999"); },
       "'batch' cannot be"},
      {"zoo_of_no_network", [] { zoo::build("?=,=,"); }, "zoo has no network"},
  };
  return rows;
}

class HostileInput : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileInput, EndsInAnError) {
  const auto began = std::chrono::steady_clock::now();
  try {
    GetParam().read();
    ADD_FAILURE() << "it was taken for sound";
  } catch (const Error& error) {
    std::string text = error.what();
    for (const Error& further : error.further()) text += further.what();
    EXPECT_NE(text.find(GetParam().says), std::string::npos) << text;
    EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
  } catch (const std::exception& exception) {
    ADD_FAILURE() << "not an Error: " << exception.what();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  if (seconds.count() > 0.5) std::cout << "took " << seconds.count() << " s\n";
}

std::string name_of(const ::testing::TestParamInfo<Hostile>& row) { return row.param.name; }

INSTANTIATE_TEST_SUITE_P(Models, HostileInput, ::testing::ValuesIn(hostile_models()), name_of);
INSTANTIATE_TEST_SUITE_P(Texts, HostileInput, ::testing::ValuesIn(hostile_texts()), name_of);

}  // namespace
}  // namespace tenon::frontends::onnx::testing_models::hostile_test
