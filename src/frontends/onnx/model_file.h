#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace onnx_schema {
class ModelProto;
}

namespace tenon::onnx {

/// Reads a model's message, in one pass over the file. Throws Error (at `path`) for a file that
/// cannot be read, is not an ONNX model, or nests too deeply.
std::shared_ptr<onnx_schema::ModelProto> read_model(const std::string& path);
std::shared_ptr<onnx_schema::ModelProto> read_model(std::span<const std::byte> bytes,
                                                    const std::string& source);

/// Whether the bytes a file starts with could be an ONNX model's; for telling formats apart.
bool looks_like_model(std::span<const std::byte> start);

/// "models" for "models/a.onnx", "" for "a.onnx".
std::string folder_of(const std::string& path);

}  // namespace tenon::onnx
