#pragma once

#include "driver/image_input.h"
#include "ops/evaluation.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Reads "NAME:1x3x224x224" (any number of them) into extents by input name. Throws Error (Usage)
/// for text that is no such list.
std::map<std::string, Shape> parse_shapes(const std::vector<std::string>& texts);

/// The values that shapes of inputs give to symbols. Throws Error (Usage) for inputs that there are
/// not and for wrong ranks.
DimBindings symbol_values(const Graph& graph, const std::map<std::string, Shape>& given);

/// The extents of every input: those given, and where the type has symbols nobody gave a value the
/// least one of their range (at least 1). Symbols keep one value throughout.
std::map<std::string, Shape> input_shapes(const Graph& graph,
                                          const std::map<std::string, Shape>& given = {});

/// Seeded inputs: floats normally distributed, integers small enough to index with, bools mixed.
std::vector<Datum> random_inputs(const Graph& graph, std::uint64_t seed,
                                 const std::map<std::string, Shape>& shapes = {});

/// Inputs as a command line names them, one text each: `NAME:@file.npy`, `NAME:@file.pb`, an image
/// (`NAME:@cat.jpg`), `NAME:random:SEED`, `NAME:zeros`, `@file.npz` or `@DIR` (a file for each
/// input: NAME.npy, NAME.pb, input_K.pb, or a folder NAME.items for a sequence). Inputs that are
/// not named are random.
std::vector<Datum> read_inputs(const Graph& graph, const std::vector<std::string>& texts,
                               const std::map<std::string, Shape>& shapes = {},
                               const PixelSettings& pixels = {});

/// The file of a value in a folder, as `NAME.npy`, `NAME.pb`, `PREFIX_K.pb` or `NAME.items`; empty
/// if there is none.
std::string find_value_file(const std::string& folder, const std::string& name,
                            const std::string& prefix, std::size_t position);
/// A `.npy` or `.pb` file, or a folder that `write_value` made, as a value of the given type.
Datum read_value_file(const std::string& path, const Type& type);
/// Writes a value into a folder: a tensor as NAME.npy; of a sequence or an optional, each element
/// into a folder NAME.items, as 0.npy, 1.npy and so on. Throws Error.
void write_value(const Datum& value, const std::string& folder, const std::string& name);
/// Makes a folder and those it lies in. Throws Error (Usage) that says why it cannot.
void make_folder(const std::string& path);
/// A value's name as a file name: characters that name a place become `_`.
std::string file_name_of(std::string_view value_name);

}  // namespace tenon
