"""ONNX Runtime's session interface on Tenon: scripts run after replacing the import."""

from __future__ import annotations

import concurrent.futures
import json
import os
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy as np

from ._library import DeviceError, UnsupportedError
from ._model import Model, load
from ._ort_errors import Fail, InvalidArgument, InvalidProtobuf, NoSuchFile, ort_errors
from ._ort_options import ModelMetadata, NodeArg, RunOptions, SessionOptions, type_text
from ._ort_values import IOBinding, OrtValue, fed, get_available_providers
from ._program import Port, Program

_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def _loaded(path_or_bytes: Any, threads: int) -> Any:
    """Loads a model. A file that does not exist and content of no known format are errors of their own."""
    is_content = isinstance(path_or_bytes, (bytes, bytearray, memoryview))
    source = path_or_bytes if is_content else os.fspath(path_or_bytes)
    if not is_content and not str(source).startswith(("zoo:", "random:")) and not os.path.exists(source):
        raise NoSuchFile(f"Load model from {source} failed: File doesn't exist")
    try:
        with ort_errors():
            return load(source, threads)
    except InvalidArgument as error:
        raise NoSuchFile(str(error)) if not is_content else error
    except Exception as error:
        if str(error).startswith(("not an ONNX model", "the text is of no format")):
            raise InvalidProtobuf(str(error)) from None
        raise


def _normal_providers(providers: Sequence[Any] | None, options: Sequence[Any] | None) -> dict[str, dict[str, str]]:
    """Returns the options of each available provider, in order, and warns about the others. The CPU comes last."""
    providers, options = list(providers or []), list(options or [])
    if options and len(options) != len(providers):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    available, chosen = get_available_providers(), {}
    for k, provider in enumerate(providers):
        name, given = (provider, {}) if isinstance(provider, str) else provider
        if not isinstance(name, str):
            raise ValueError("Only string values are allowed in 'providers', or tuples of a name and options.")
        given = options[k] if options else given
        if name not in available:
            warnings.warn(f"Specified provider '{name}' is not in available provider names. "
                          f"Available providers: '{', '.join(available)}'", UserWarning, stacklevel=3)
        else:
            chosen.setdefault(name, {key: str(value) for key, value in dict(given or {}).items()})
    chosen.setdefault(_CPU, {})
    return chosen


def _with_extents(ports: Sequence[Port], extents: Mapping[str, int]) -> dict[str, list[int]]:
    """Returns the shapes of inputs whose symbols are all among these."""
    shapes = {}
    for port in ports:
        shape = [extents.get(extent, extent) if isinstance(extent, str) else extent for extent in port.shape or ()]
        if shape != list(port.shape or ()) and all(isinstance(extent, int) for extent in shape):
            shapes[port.name] = shape
    return shapes


class _Trace:
    """Events of profiled runs in Chrome's format."""

    def __init__(self) -> None:
        self._begin_ns = time.perf_counter_ns()
        self._lock = threading.Lock()
        self._events: list[dict[str, Any]] = []

    def add(self, begin_ns: int, steps: Iterable[Mapping[str, Any]]) -> None:
        end_ns, thread = time.perf_counter_ns(), threading.get_ident()
        at = (begin_ns - self._begin_ns) / 1e3
        events = [self._event("Session", "model_run", at, (end_ns - begin_ns) / 1e3, thread, {})]
        for step in steps:
            duration = step["seconds"] * 1e6
            events.append(self._event("Node", f"{step['name']}_kernel_time", at, duration, thread,
                                      {"op_name": step["kernel"] or step["name"], "provider": _CPU}))
            at += duration
        with self._lock:
            self._events += events

    @staticmethod
    def _event(category: str, name: str, begin: float, duration: float, thread: int, more: dict[str, Any]) -> dict[str, Any]:
        return {"cat": category, "pid": os.getpid(), "tid": thread, "dur": round(duration), "ts": round(begin), "ph": "X",
                "name": name, "args": more}

    def write(self, prefix: str) -> str:
        path = f"{prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.getpid()}.json"
        with self._lock:
            Path(path).write_text(json.dumps(self._events))
        return path


class InferenceSession:
    """As onnxruntime.InferenceSession: a path, bytes, or anything else that `tenon.load` reads."""

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None,
                 providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None,
                 **_ignored: Any) -> None:
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._profiling_start_ns = time.time_ns()
        self._trace = _Trace() if self._options.enable_profiling else None
        self._pool: concurrent.futures.Executor | None = None
        given = _normal_providers(providers or self._options._providers, provider_options)
        self._model = _loaded(path_or_bytes, int(self._options.intra_op_num_threads))
        self._metadata = ModelMetadata(self._model.describe())
        with ort_errors():
            if isinstance(self._model, Model):
                self._prepare_model()
            self._compile(given)
        self._input_names = [port.name for port in self._program.inputs]
        self._output_names = [port.name for port in self._program.outputs]
        # Lists of maps (ZipMap) are matrices here, with a second output for the labels of their columns.
        columns = self._metadata._own
        # A map as an input (DictVectorizer, CastMap) is two lists: its keys and its values.
        self._maps = self._maps_among(columns)
        self._labels = {name: json.loads(columns[f"columns of {name}"]) for name in self._output_names
                        if f"columns of {name}" in columns}

    def _prepare_model(self) -> None:
        if self._options.optimized_model_filepath:
            self._model.save(self._options.optimized_model_filepath, "onnx")
        shapes = _with_extents(self._model.inputs, self._options._extents)
        if shapes:
            self._model = self._model.opt(shapes=shapes)

    def _compile(self, providers: dict[str, dict[str, str]]) -> None:
        """Compiles for the first provider. A model that a GPU does not run is compiled for the CPU, with a warning."""
        self._providers = providers
        if isinstance(self._model, Program):
            self._program = self._model
            return
        threads, initializers = int(self._options.intra_op_num_threads), self._options._initializers
        more: dict[str, Any] = {"swappable_weights": list(initializers)} if initializers else {}
        try:
            target = "cuda" if next(iter(providers)) == _CUDA else None
            self._program = self._model.compile(threads=threads, target=target, **more)
        except (DeviceError, UnsupportedError) as error:
            if target is None:
                raise
            warnings.warn(f"{_CUDA} cannot run the model, falling back to {_CPU}: {error}", UserWarning, stacklevel=3)
            self._providers = {_CPU: providers[_CPU]}
            self._program = self._model.compile(threads=threads, **more)
        for name, array in initializers.items():
            self._program.set_weight(name, array)

    def _given(self, name: str, result: Any) -> Any:
        if name not in self._labels:
            return result
        return [dict(zip(self._labels[name], map(float, row))) for row in result]

    def _maps_among(self, metadata: Mapping[str, str]) -> dict[str, list[str]]:
        names, maps = set(self._input_names), {}
        for key, text in metadata.items():
            try:
                parts = json.loads(text) if key.startswith("map ") else None
            except ValueError:
                continue  # metadata of the model itself
            if isinstance(parts, list) and len(parts) == 2 and all(part in names for part in parts):
                maps[key[len("map "):]] = parts
        return maps

    def _without_maps(self, feed: Mapping[str, Any]) -> Mapping[str, Any]:
        if not any(isinstance(feed.get(name), Mapping) for name in self._maps):
            return feed
        made = dict(feed)
        for name, parts in self._maps.items():
            given = made.pop(name)
            for part, items in zip(parts, (given.keys(), given.values())):
                dtype = next(port.dtype for port in self._program.inputs if port.name == part)
                made[part] = np.array(list(items), dtype=object if dtype is None else dtype)
        return made

    def _fed(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arrays of a feed. Refuses missing inputs and names that are no inputs."""
        feed = {name: fed(value) for name, value in self._without_maps(feed).items()}
        missing = [name for name in self._input_names if name not in feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        unknown = [name for name in feed if name not in self._input_names]
        if unknown:
            raise InvalidArgument(f"Invalid input name: {', '.join(unknown)}; there are {', '.join(self._input_names)}")
        for port in self._program.inputs:
            if isinstance(feed[port.name], (list, tuple, int, float)) and port.dtype is not None and port.shape is not None:
                feed[port.name] = np.asarray(feed[port.name], port.dtype)
        return feed

    def _wanted(self, output_names: Sequence[str] | None) -> list[str]:
        wanted = list(output_names) if output_names else self._output_names
        for name in wanted:
            if name not in self._output_names:
                raise InvalidArgument(f"Invalid output name: {name}; there are {', '.join(self._output_names)}")
        return wanted

    def _results(self, feed: Mapping[str, Any], run_options: RunOptions | None, out: Any = None) -> dict[str, Any]:
        if run_options is not None and run_options.terminate:
            raise Fail("Exiting due to terminate flag being set to true.")
        arrays = self._fed(feed)
        with ort_errors():
            if self._trace is None:
                return self._program.run(arrays, out=out).as_dict()
            begin_ns = time.perf_counter_ns()
            results, steps = self._program.watched_run(arrays, out=out)
            self._trace.add(begin_ns, steps)
            return results.as_dict()

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: RunOptions | None = None) -> list[Any]:
        wanted = self._wanted(output_names)
        results = self._results(input_feed, run_options)
        return [self._given(name, results[name]) for name in wanted]

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
                  callback: Callable[[list[Any], Any, str], Any], user_data: Any = None,
                  run_options: RunOptions | None = None) -> None:
        """Runs in another thread and calls `callback(results, user_data, error)`; without an error that text is empty."""
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="tenon")

        def call() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as caught:
                results, error = [], str(caught)
            callback(results, user_data, error)

        self._pool.submit(call)

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        wanted = self._wanted(output_names)
        results = self._results(input_dict_ort_values, run_options)
        return [OrtValue(results[name]) for name in wanted]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        targets = {name: array for name, array in iobinding._outputs.items() if array is not None}
        iobinding._results = self._results(iobinding._inputs, run_options, targets or None)
        if not iobinding._outputs:
            iobinding._outputs = {name: None for name in self._output_names}

    def get_inputs(self) -> list[NodeArg]:
        ports = {port.name: port for port in self._program.inputs}
        arguments = []
        for name, port in ports.items():
            whole = next((key for key, parts in self._maps.items() if name in parts), None)
            if whole is None:
                arguments.append(NodeArg(port))
            elif name == self._maps[whole][0]:
                key, value = (type_text(ports[part].type) for part in self._maps[whole])
                arguments.append(NodeArg(Port(whole, "", None, None)))
                arguments[-1].type = f"map({key[len('tensor('):-1]},{value})"
        return arguments

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self._program.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Returns none: initializers are constants. `SessionOptions.add_initializer` replaces one for a session."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        return self._metadata

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: dict(options) for name, options in self._providers.items()}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None) -> None:
        given = _normal_providers(providers, provider_options)
        with ort_errors():
            if next(iter(given)) == next(iter(self._providers)):
                self._providers = given
            else:
                self._compile(given)

    def get_session_options(self) -> SessionOptions:
        return self._options

    def disable_fallback(self) -> None:
        """Ignored: a session that was made does not change its provider."""

    def enable_fallback(self) -> None:
        """Ignored: a session that was made does not change its provider."""

    def get_profiling_start_time_ns(self) -> int:
        return self._profiling_start_ns

    def end_profiling(self) -> str:
        """Writes a Chrome trace of all runs since the session began; returns its path, or "" without `enable_profiling`."""
        if self._trace is None:
            return ""
        trace, self._trace = self._trace, None
        return trace.write(self._options.profile_file_prefix)
