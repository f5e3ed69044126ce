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

namespace tenon::numpy {

/// The arrays of a `.npz` archive by name (without ".npy"), stored or deflated. With an `owner` of
/// the bytes, stored arrays stay where they are if they can. Throws Error for bytes that are no
/// such archive, for wrong checksums, and for archives that unpack to far more than they are.
std::map<std::string, Tensor> read_npz(std::span<const std::byte> bytes,
                                       std::shared_ptr<const void> owner = nullptr);
std::map<std::string, Tensor> read_npz_file(const std::string& path);

/// The same of a file that is mapped: arrays that are stored unpacked take no memory.
std::map<std::string, StoredArray> stored_npz_file(const std::string& path);

/// Writes an archive of stored arrays; the same arrays give the same bytes.
void write_npz_file(const std::vector<std::pair<std::string, Tensor>>& arrays,
                    const std::string& path);

}  // namespace tenon::numpy
