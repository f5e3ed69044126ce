#include "models/inputs.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/numpy/npy.h"
#include "frontends/numpy/npz.h"
#include "frontends/onnx/datum_proto.h"

#include <algorithm>
#include <filesystem>

namespace tenon::models {
namespace {

namespace fs = std::filesystem;

// Integer inputs are usually indices: these are valid for any table, even BERT's two token types.
constexpr double kLargestRandomInteger = 1;

Datum random_value(const Type& type, const Shape& shape, std::uint64_t seed) {
  const DType dtype = type.tensor().dtype;
  if (dtype == DType::String) return Tensor(DType::String, shape);
  if (dtype == DType::Bool) return Constant::uniform(dtype, shape, seed, 0, 1).materialise();
  if (is_integer(dtype)) {
    const double high =
        std::min(kLargestRandomInteger, static_cast<double>(highest_integer(dtype)));
    return Constant::uniform(dtype, shape, seed, 0, high).materialise();
  }
  return Constant::normal(dtype, shape, seed, 0, 1).materialise();
}

const TensorType& tensor_type_of(const Graph& graph, ValueId input) {
  const Value& value = graph.value(input);
  if (!value.type.is_tensor()) {
    throw Error(concat("input '", value.name, "' is not a tensor: give it as a file"),
                ErrorKind::Usage)
        .got(value.type);
  }
  return value.type.tensor();
}

std::size_t input_position(const Graph& graph, const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t k = 0; k < graph.inputs().size(); ++k) {
    known.push_back(graph.value(graph.inputs()[k]).name);
    if (known.back() == name) return k;
  }
  throw Error(concat("the model has no input '", name, "'"), ErrorKind::Usage)
      .hint(suggest_name(name, known));
}

Error shape_misfit(const Value& input, const Shape& shape) {
  return Error(concat("the shape given for '", input.name, "' does not fit"), ErrorKind::Usage)
      .expected(input.type)
      .got(Dims(shape.begin(), shape.end()));
}

// Binds the symbols that stand alone among the extents of an input.
void bind_symbols(const Value& input, const Shape& shape, DimBindings& bindings) {
  const Dims& dims = input.type.tensor().dims;
  if (dims.size() != shape.size()) {
    throw Error(concat("the shape given for '", input.name, "' has the wrong rank"),
                ErrorKind::Usage)
        .at("input '", input.name, "'")
        .expected(input.type)
        .got(Dims(shape.begin(), shape.end()));
  }
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const auto misfit = [&] {
      return shape_misfit(input, shape).at("input '", input.name, "', axis ", axis);
    };
    if (shape[axis] < 0 || shape[axis] > kMaxExtent)
      throw misfit().hint("an extent lies from 0 to ", kMaxExtent);
    const auto symbol = dims[axis].symbol_name();
    if (!symbol) continue;
    const Range range = dims[axis].range();
    if (shape[axis] < range.lo || shape[axis] > range.hi)
      throw misfit().hint(*symbol, " lies from ", range.lo, " to ", range.hi);
    const auto [known, is_new] = bindings.emplace(*symbol, shape[axis]);
    if (!is_new && !(known->second == Dim(shape[axis])))
      throw misfit().hint(*symbol, " is ", known->second, " on another axis");
  }
}

void require_equal_extents(const Value& input, const Shape& shape, const DimBindings& bindings) {
  const Dims dims = substitute(input.type.tensor().dims, bindings);
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (!dims[axis].is_constant() || dims[axis] == Dim(shape[axis])) continue;
    throw shape_misfit(input, shape)
        .at("input '", input.name, "', axis ", axis)
        .hint("the extent is ", dims[axis]);
  }
}

[[noreturn]] void refuse_spec(const std::string& text) {
  throw Error("cannot read an input's description", ErrorKind::Usage)
      .expected("NAME:@file.npy, NAME:@file.pb, NAME:random:SEED, NAME:zeros, @file.npz or @DIR")
      .got(text);
}

}  // namespace

std::map<std::string, Shape> parse_shapes(const std::vector<std::string>& texts) {
  std::map<std::string, Shape> shapes;
  for (const std::string& text : texts) {
    for (const std::string& part : split(text, ',')) {
      const std::size_t colon = part.rfind(':');
      if (colon == std::string::npos || colon == 0) {
        throw Error("cannot read a shape", ErrorKind::Usage).expected("NAME:1x3x224x224").got(part);
      }
      Shape shape;
      const std::string extents = part.substr(colon + 1);
      for (const std::string& word :
           extents.empty() ? std::vector<std::string>{} : split(extents, 'x')) {
        const std::optional<std::int64_t> extent = parse_integer(word);
        if (!extent || *extent < 0 || *extent > kMaxExtent) {
          throw Error("cannot read an extent", ErrorKind::Usage)
              .expected("NAME:1x3x224x224")
              .got(part);
        }
        shape.push_back(*extent);
      }
      shapes[part.substr(0, colon)] = std::move(shape);
    }
  }
  return shapes;
}

DimBindings symbol_values(const Graph& graph, const std::map<std::string, Shape>& given) {
  for (const auto& [name, shape] : given) input_position(graph, name);
  DimBindings bindings;
  const auto for_each_shape = [&](const auto& visit) {
    for (ValueId input : graph.inputs()) {
      const Value& value = graph.value(input);
      const auto found = given.find(value.name);
      if (found != given.end() && value.type.is_tensor()) visit(value, found->second);
    }
  };
  for_each_shape(
      [&](const Value& value, const Shape& shape) { bind_symbols(value, shape, bindings); });
  for_each_shape([&](const Value& value, const Shape& shape) {
    require_equal_extents(value, shape, bindings);
  });
  return bindings;
}

std::map<std::string, Shape> input_shapes(const Graph& graph,
                                          const std::map<std::string, Shape>& given) {
  DimBindings bindings = symbol_values(graph, given);
  std::map<std::string, Shape> shapes;
  for (ValueId input : graph.inputs()) {
    const Value& value = graph.value(input);
    if (!value.type.is_tensor()) continue;
    const auto found = given.find(value.name);
    if (found != given.end()) {
      shapes[value.name] = found->second;
      continue;
    }
    SymbolRanges symbols;
    for (const Dim& dim : value.type.tensor().dims) dim.collect_symbols(symbols);
    for (const auto& [symbol, range] : symbols) {
      bindings.emplace(symbol, Dim(std::max<std::int64_t>(1, range.lo)));
    }
    shapes[value.name] = constants(substitute(value.type.tensor().dims, bindings));
  }
  return shapes;
}

std::vector<Datum> random_inputs(const Graph& graph, std::uint64_t seed,
                                 const std::map<std::string, Shape>& shapes) {
  return read_inputs(graph, {concat("*:random:", seed)}, shapes);
}

namespace {

// Returns the initial value of the state of an input; no value without one.
std::optional<Datum> initial_state(const Graph& graph, std::size_t input,
                                   const std::map<std::string, Shape>& shapes) {
  const auto state = std::ranges::find(graph.states, input, &Graph::State::input);
  if (state == graph.states.end()) return std::nullopt;
  if (state->initial) return state->initial->materialise();
  if (!state->starts_with_zeros) return std::nullopt;
  const Value& value = graph.value(graph.inputs()[input]);
  return Tensor(value.type.tensor().dtype, shapes.at(value.name));
}

}  // namespace

std::vector<Datum> read_inputs(const Graph& graph, const std::vector<std::string>& texts,
                               const std::map<std::string, Shape>& given,
                               const PixelSettings& pixels) {
  std::uint64_t seed = 0;
  std::vector<std::optional<Datum>> values(graph.inputs().size());
  const std::map<std::string, Shape> shapes = input_shapes(graph, given);
  const auto type_of = [&](std::size_t k) -> const Type& {
    return graph.value(graph.inputs()[k]).type;
  };
  const auto name_of = [&](std::size_t k) -> const std::string& {
    return graph.value(graph.inputs()[k]).name;
  };
  const auto random_at = [&](std::size_t k, std::uint64_t with_seed) {
    tensor_type_of(graph, graph.inputs()[k]);
    try {
      return random_value(type_of(k), shapes.at(name_of(k)), with_seed * 1000 + k);
    } catch (Error& error) {
      throw error.at("input '", name_of(k), "'");
    }
  };
  for (const std::string& text : texts) {
    if (text.rfind('@', 0) == 0) {
      const std::string path = text.substr(1);
      std::error_code unreadable;  // treated as a file: opening it reports the reason
      if (fs::is_directory(path, unreadable)) {
        for (std::size_t k = 0; k < values.size(); ++k) {
          const std::string file = find_value_file(path, name_of(k), "input", k);
          if (!file.empty()) values[k] = read_value_file(file, type_of(k));
        }
      } else {
        for (auto& [name, tensor] : frontends::numpy::read_npz_file(path)) {
          values[input_position(graph, name)] = std::move(tensor);
        }
      }
      continue;
    }
    // Searches from the end, because the name may contain colons.
    std::size_t colon = text.find(":@");
    if (colon == std::string::npos) colon = text.rfind(":random:");
    if (colon == std::string::npos && text.ends_with(":zeros")) colon = text.size() - 6;
    if (colon == std::string::npos) refuse_spec(text);
    const std::string name = text.substr(0, colon), what = text.substr(colon + 1);
    if (what.rfind("random:", 0) == 0) {
      const std::optional<std::int64_t> number = parse_integer(what.substr(7));
      if (!number || *number < 0) refuse_spec(text);
      if (name == "*") {
        seed = static_cast<std::uint64_t>(*number);
      } else {
        const std::size_t k = input_position(graph, name);
        values[k] = random_at(k, static_cast<std::uint64_t>(*number));
      }
    } else {
      const std::size_t k = input_position(graph, name);
      if (what == "zeros") {
        values[k] = Tensor(tensor_type_of(graph, graph.inputs()[k]).dtype, shapes.at(name));
      } else if (is_image_file(what)) {
        values[k] = read_image_input(what.substr(1), tensor_type_of(graph, graph.inputs()[k]).dtype,
                                     shapes.at(name), pixels);
      } else {
        values[k] = read_value_file(what.substr(1), type_of(k));
      }
    }
  }
  std::vector<Datum> inputs;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!values[k]) values[k] = initial_state(graph, k, shapes);
    inputs.push_back(values[k] ? std::move(*values[k]) : random_at(k, seed));
  }
  return inputs;
}

std::string find_value_file(const std::string& folder, const std::string& name,
                            const std::string& prefix, std::size_t position) {
  const fs::path base(folder);
  const std::string stem = file_name_of(name);
  for (const std::string& candidate :
       {stem + ".npy", stem + ".pb", concat(prefix, "_", position, ".pb"), stem + ".items"}) {
    std::error_code unreadable;
    if (fs::exists(base / candidate, unreadable)) return (base / candidate).string();
  }
  return "";
}

namespace {

// Returns the element type of a tensor type; nullopt for other types.
std::optional<DType> dtype_of(const Type& type) {
  if (!type.is_tensor()) return std::nullopt;
  return type.tensor().dtype;
}

Type element_of(const Type& type) {
  const bool has_elements =
      type.kind() == Type::Kind::Sequence || type.kind() == Type::Kind::Optional;
  return has_elements ? type.element() : Type();
}

std::string item_file(const std::string& folder, std::size_t position) {
  for (const char* ending : {".npy", ".items"}) {
    std::error_code unreadable;
    const fs::path file = fs::path(folder) / concat(position, ending);
    if (fs::exists(file, unreadable)) return file.string();
  }
  return "";
}

// Removes files of `write_value`, and the folder if it is empty afterwards.
void remove_items(const std::string& folder) {
  std::error_code ignored;
  std::size_t position = 0;
  for (std::string file = item_file(folder, 0); !file.empty();
       file = item_file(folder, ++position)) {
    if (fs::is_directory(file, ignored)) remove_items(file);
    fs::remove(file, ignored);
  }
  fs::remove(folder, ignored);
}

Datum read_items(const std::string& folder, const Type& type) {
  std::vector<Datum> items;
  const Type element = element_of(type);
  for (std::string file = item_file(folder, 0); !file.empty();
       file = item_file(folder, items.size())) {
    items.push_back(read_value_file(file, element));
  }
  if (type.kind() != Type::Kind::Optional) {
    return items.empty() ? Datum::empty_sequence(dtype_of(element).value_or(DType::F32))
                         : Datum::sequence(std::move(items));
  }
  if (items.size() > 1)
    throw Error("an optional holds one value at most").at(folder).got(items.size(), " files");
  return items.empty() ? Datum() : Datum::optional(std::move(items.front()));
}

}  // namespace

Datum read_value_file(const std::string& path, const Type& type) {
  if (path.ends_with(".pb")) return frontends::onnx::read_datum_file(path, type);
  std::error_code unreadable;
  if (fs::is_directory(path, unreadable)) return read_items(path, type);
  return frontends::numpy::read_npy_file(path, dtype_of(type));
}

void make_folder(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  // The system may report "File exists" for a file in place of the last folder without an error
  // code.
  if (!failed && !fs::is_directory(path, failed) && !failed)
    failed = std::make_error_code(std::errc::not_a_directory);
  if (failed)
    throw Error(concat("cannot make the folder '", path, "'"), ErrorKind::Usage)
        .got(failed.message());
}

void write_value(const Datum& value, const std::string& folder, const std::string& name) {
  const std::string stem = (fs::path(folder) / name).string(), array = stem + ".npy",
                    items = stem + ".items";
  remove_items(items);  // a longer sequence may have been there before
  if (value.is_tensor()) {
    frontends::numpy::write_npy_file(value.tensor(), array);
    return;
  }
  make_folder(items);
  for (std::size_t k = 0; k < value.items().size(); ++k)
    write_value(value.items()[k], items, concat(k));
  std::error_code ignored;
  fs::remove(array, ignored);  // left from a tensor of that name
}

std::string file_name_of(std::string_view value_name) {
  std::string name(value_name);
  std::replace(name.begin(), name.end(), '/', '_');
  if (name.empty() || name[0] == '.') name.insert(name.begin(), '_');
  return name;
}

}  // namespace tenon::models
