"""The module path under which scripts import ONNX Runtime's exceptions."""
