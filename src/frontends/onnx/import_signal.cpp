#include "frontends/onnx/op_call.h"

namespace tenon::frontends::onnx {
namespace {

Attr dtype_attr(const NodeImport& node) {
  return {"dtype", to_string(node.element("output_datatype", DType::F32))};
}

// The axis was an attribute before opset 20 and is an input since, with another default.
void import_dft(NodeImport& node) {
  OpCall call(node, "dft");
  call.operand("x", node.input(0))
      .dynamic("length", 1)
      .attr({"inverse", node.integer("inverse") != 0})
      .attr({"onesided", node.integer("onesided") != 0});
  if (node.opset() < 20) {
    call.attr({"axis", node.integer("axis", 1)});
  } else {
    call.dynamic("axis", 2);
  }
  node.output(call.result());
}

void import_window(NodeImport& node) {
  const std::string_view type = node.op_type();
  const char* kind = type == "HannWindow"      ? "hann"
                     : type == "HammingWindow" ? "hamming"
                                               : "blackman";
  node.output(OpCall(node, "signal_window")
                  .dynamic("size", 0)
                  .attr({"kind", kind})
                  .attr({"periodic", node.integer("periodic", 1) != 0})
                  .attr(dtype_attr(node))
                  .result());
}

void import_image_decoder(NodeImport& node) {
  const std::string format = node.text("pixel_format", "RGB");
  node.output(node.call("image_decode", {node.input(0)},
                        {{"pixel_format", format == "BGR"         ? "bgr"
                                          : format == "Grayscale" ? "grayscale"
                                                                  : "rgb"}}));
}

constexpr Handler signal_table[] = {
    {"BlackmanWindow", import_window},      {"DFT", import_dft},
    {"HammingWindow", import_window},       {"HannWindow", import_window},
    {"ImageDecoder", import_image_decoder},
};

}  // namespace

std::span<const Handler> signal_handlers() { return signal_table; }

}  // namespace tenon::frontends::onnx
