"""Tenon: reads a neural network, optimizes it, runs or trains it, and profiles time and memory.

    import tenon
    y = tenon.load("model.onnx").compile(threads=2)(x)

`tenon.InferenceSession` is compatible with ONNX Runtime's; `tenon.backend` is ONNX's backend interface.
"""

from . import zoo
from ._device import DeviceArray
from ._library import (ComparisonFailed, DeviceError, Error, InternalError, InvalidModelError, OutOfMemoryError,
                       UnsupportedError, UsageError, command, devices, load_plugin, run_command, version)
from ._model import Model, Profile, Quantization, Trainer, Training, load
from ._program import Context, Outputs, Pending, Port, Program
from ._ort_options import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, ModelMetadata, NodeArg, RunOptions,
                           SessionOptions)
from ._ort_values import (IOBinding, OrtDevice, OrtValue, disable_telemetry_events, enable_telemetry_events,
                          get_all_providers, get_available_providers, get_build_info, get_device, get_version_string,
                          preload_dlls, set_default_logger_severity, set_default_logger_verbosity, set_seed)
from ._session import InferenceSession

__version__ = version()

__all__ = [
    "ComparisonFailed", "Context", "DeviceArray", "DeviceError", "Error", "ExecutionMode", "ExecutionOrder",
    "GraphOptimizationLevel", "IOBinding", "InferenceSession", "InternalError", "InvalidModelError", "Model",
    "ModelMetadata", "NodeArg", "OrtDevice", "OrtValue", "OutOfMemoryError", "Outputs", "Pending", "Port", "Profile",
    "Program", "Quantization", "RunOptions", "SessionOptions", "Trainer", "Training", "UnsupportedError",
    "UsageError", "command", "devices", "disable_telemetry_events", "enable_telemetry_events", "get_all_providers",
    "get_available_providers", "get_build_info", "get_device", "get_version_string", "load", "load_plugin",
    "preload_dlls", "run_command", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed",
    "version", "zoo",
]
