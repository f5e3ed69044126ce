#pragma once

#include "ir/graph.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::frontends::torch {

/// Reads an exported program of PyTorch (`.pt2`, written by `torch.export.save`) into a verified
/// graph. Weights are mapped, not copied. Throws Error for an invalid file, and one Error
/// (Unsupported) that lists all operators without an import rule. `warnings` receives statements of
/// the file that the graph does not keep.
Graph import_torch(const std::string& path, std::vector<std::string>* warnings = nullptr);
/// Reads a program in memory; `owner` keeps the bytes. `source` is its name in messages.
Graph import_torch(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                   const std::string& source, std::vector<std::string>* warnings = nullptr);

/// Returns whether a file begins as a zip archive does.
bool is_archive(std::string_view head);

}  // namespace tenon::frontends::torch
