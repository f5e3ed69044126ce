"""ONNX Runtime's options, and its descriptions of models and ports."""

from __future__ import annotations

import enum
from typing import Any, Mapping, Sequence

from ._ort_errors import NotImplemented  # noqa: A004
from ._program import Port

ONNX_TYPES = {
    "f64": "double", "f32": "float", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
    "string": "string", "c64": "complex64", "c128": "complex128", "f8e4m3fn": "float8e4m3fn", "f8e5m2": "float8e5m2",
}


def _entry(entries: Mapping[str, str], key: str) -> str:
    if key not in entries:
        raise RuntimeError(f"there is no configuration with the key '{key}'")
    return entries[key]


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1


class SessionOptions:
    """`intra_op_num_threads`, `optimized_model_filepath`, `enable_profiling`, free dimensions and initializers have an
    effect. The other fields exist for scripts that set them: Tenon always runs its passes and plans memory."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.optimized_model_filepath = ""
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_cpu_mem_arena = True
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.use_deterministic_compute = False
        self._entries: dict[str, str] = {}
        self._extents: dict[str, int] = {}
        self._initializers: dict[str, Any] = {}
        self._providers: list[Any] = []

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return _entry(self._entries, key)

    def add_initializer(self, name: str, value: Any) -> None:
        """Replaces an initializer of the model by an OrtValue."""
        self._initializers[name] = value.numpy()

    def add_external_initializers(self, names: Sequence[str], values: Sequence[Any]) -> None:
        for name, value in zip(names, values):
            self.add_initializer(name, value)

    def add_provider(self, name: str, options: Mapping[str, str] | None = None) -> None:
        self._providers.append((name, dict(options or {})))

    def has_providers(self) -> bool:
        return bool(self._providers)

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Replaces the symbol `name` in input shapes by a number."""
        self._extents[name] = int(value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Ignored: denotations of axes are not imported."""

    def register_custom_ops_library(self, path: str) -> None:
        raise NotImplemented(f"libraries of ONNX Runtime's operators cannot be loaded: {path}")


class RunOptions:
    """`terminate` has an effect before a run begins."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.terminate = False
        self.only_execute_path_to_fetches = False
        self.training_mode = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return _entry(self._entries, key)


class NodeArg:
    """An input or output: name, shape with numbers and names, and a type such as "tensor(float)"."""

    def __init__(self, port: Port) -> None:
        self.name = port.name
        # A symbol that the model does not name is unknown.
        self.shape = [None if isinstance(extent, str) and "#" in extent else extent for extent in port.shape or ()]
        self.type = type_text(port.type)

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __repr__ = __str__


def type_text(text: str) -> str:
    if text.startswith("seq("):
        return f"seq({type_text(text[4:-1])})"
    if text.startswith("optional("):
        return f"optional({type_text(text[9:-1])})"
    name = text.split("[")[0]
    return f"tensor({ONNX_TYPES.get(name, name)})"


class ModelMetadata:
    def __init__(self, description: Mapping[str, Any]) -> None:
        metadata = {name: text for name, text in description.get("metadata", {}).items()
                    if name not in ("opset", "producer_version")}
        self.graph_name = description.get("name", "")
        self.producer_name = metadata.pop("producer_name", metadata.pop("producer", ""))
        self.domain = metadata.pop("domain", "")
        self.description = metadata.pop("doc_string", "")
        self.graph_description = ""
        self.version = int(metadata.pop("model_version", 0) or 0)
        self._own = {name: text for name, text in metadata.items() if name.startswith(("columns of ", "map "))}
        self.custom_metadata_map = {name: text for name, text in metadata.items() if name not in self._own}
