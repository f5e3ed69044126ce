#pragma once

#include "frontends/numpy/npy.h"
#include "ir/tensor.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tenon::frontends::numpy {

/// Reads the arrays of a `.npz` archive by name (without ".npy"), stored or deflated. With an
/// `owner` of the bytes, stored arrays are not copied if possible. Throws Error for malformed
/// archives, wrong checksums, and archives that inflate far beyond their size.
std::map<std::string, Tensor> read_npz(std::span<const std::byte> bytes,
                                       std::shared_ptr<const void> owner = nullptr);
std::map<std::string, Tensor> read_npz_file(const std::string& path);

/// Maps a file and reads it; uncompressed arrays take no memory.
std::map<std::string, StoredArray> stored_npz_file(const std::string& path);

/// Writes an archive of stored arrays; the same arrays give the same bytes.
void write_npz_file(const std::vector<std::pair<std::string, Tensor>>& arrays,
                    const std::string& path);

}  // namespace tenon::frontends::numpy
