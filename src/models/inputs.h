#pragma once

#include "models/image_input.h"
#include "ops/definition/evaluation.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::models {

/// Parses a list "NAME:1x3x224x224,…" into extents by input name. Throws Error (Usage) for invalid
/// text.
std::map<std::string, Shape> parse_shapes(const std::vector<std::string>& texts);

/// Returns the values of symbols implied by input shapes. Throws Error (Usage) for unknown inputs
/// and shapes that contradict the inputs' types or one another.
DimBindings symbol_values(const Graph& graph, const std::map<std::string, Shape>& given);

/// Returns the extents of every input: the given ones, and the least value of the range (at least
/// 1) for unbound symbols. A symbol has one value throughout.
std::map<std::string, Shape> input_shapes(const Graph& graph,
                                          const std::map<std::string, Shape>& given = {});

/// Returns seeded inputs: normally distributed floats, integers small enough to index with, mixed
/// bools.
std::vector<Datum> random_inputs(const Graph& graph, std::uint64_t seed,
                                 const std::map<std::string, Shape>& shapes = {});

/// Reads inputs from command-line arguments: `NAME:@file.npy`, `NAME:@file.pb`, an image
/// (`NAME:@cat.jpg`), `NAME:random:SEED`, `NAME:zeros`, `@file.npz` or `@DIR` (a file for each
/// input: NAME.npy, NAME.pb, input_K.pb, or a folder NAME.items for a sequence). Other inputs are
/// the initial values of their states, or random.
std::vector<Datum> read_inputs(const Graph& graph, const std::vector<std::string>& texts,
                               const std::map<std::string, Shape>& shapes = {},
                               const PixelSettings& pixels = {});

/// Returns the file of a value in a folder, `NAME.npy`, `NAME.pb`, `PREFIX_K.pb` or `NAME.items`;
/// empty if it does not exist.
std::string find_value_file(const std::string& folder, const std::string& name,
                            const std::string& prefix, std::size_t position);
/// Reads a `.npy` or `.pb` file, or a folder that `write_value` made, as a value of the given type.
Datum read_value_file(const std::string& path, const Type& type);
/// Writes a value into a folder: a tensor as NAME.npy; the elements of a sequence or optional into
/// a folder NAME.items as 0.npy, 1.npy and so on. Throws Error.
void write_value(const Datum& value, const std::string& folder, const std::string& name);
/// Makes a folder with its parents. Throws Error (Usage) with the reason if that fails.
void make_folder(const std::string& path);
/// Returns a value's name as a file name: path separators and the like become `_`.
std::string file_name_of(std::string_view value_name);

}  // namespace tenon::models
