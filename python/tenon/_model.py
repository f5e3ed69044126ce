"""Models: loading, inspection, transformation, compilation, training."""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from ._library import (CTensor, UsageError, check, command, error_of, handle_from, json_from, lib, options_text,
                       run_command)
from ._program import Port, Program
from ._tensors import DTYPES, NUMBERS, Memory, as_array, describe, extents_of, fitting


def _port(entry: Mapping[str, str]) -> Port:
    text = entry["type"]
    extents = extents_of(text)
    number = NUMBERS.get(text.split("[")[0], 0)
    return Port(entry["name"], text, None if extents is None else tuple(extents),
                DTYPES[number][1] if number else None, number)


class Model:
    """An imported network. Immutable: transformations return a new model."""

    def __init__(self, handle: ctypes.c_void_p, source: str | None = None) -> None:
        self._handle = handle
        self._source = source
        description = json_from(lib.tenon_model_describe, handle)
        self.name: str = description["name"]
        self.inputs = [_port(entry) for entry in description["inputs"]]
        self.outputs = [_port(entry) for entry in description["outputs"]]

    def __del__(self) -> None:
        if lib is not None and hasattr(self, "_handle"):
            lib.tenon_model_free(self._handle)

    def describe(self) -> dict[str, Any]:
        """Inputs, outputs, symbols, nodes by operator, parameters, flops, metadata."""
        return json_from(lib.tenon_model_describe, self._handle)

    def compile(self, threads: int = 0, target: str | None = None, precision: str | None = None,
                tune: float | None = None, untuned: bool = False, winograd: bool = True,
                specialised_shapes: Sequence[str] | None = None,
                swappable_weights: bool | Sequence[str] = False,
                prefer: Sequence[str] | None = None) -> Program:
        """Compiles the model. `threads`: number of threads of a run, for which kernels are chosen; 0: all available ones.
        `target`: "x86-64-v3", "cuda:sm_90a"; by default this processor. `precision`: "f16", "bf16". `tune`: seconds
        for timing kernels. `prefer`: names of candidates to select whenever they accept, such as "wgmma", "library"."""
        options = options_text({
            "threads": threads, "target": target, "precision": precision, "tune_seconds": tune, "untuned": untuned,
            "winograd": winograd, "prefer": list(prefer or []), "specialised_shapes": list(specialised_shapes or []),
            "swappable_weights": swappable_weights if isinstance(swappable_weights, bool) else list(swappable_weights)})
        return Program(handle_from(lib.tenon_model_compile, self._handle, options), threads)

    def opt(self, passes: Sequence[str] | None = None, without: Sequence[str] | None = None,
            stop_after: str | None = None, set: Mapping[str, Any] | None = None,  # noqa: A002
            shapes: Mapping[str, Sequence[int]] | None = None) -> "Model":
        """Returns the model after the standard passes, or the named ones. `shapes` replaces symbols by values."""
        options = options_text({"passes": list(passes) if passes else None, "without": list(without) if without else None,
                                "stop_after": stop_after, "set": dict(set) if set else None,
                                "shapes": {name: list(shape) for name, shape in shapes.items()} if shapes else None})
        return Model(handle_from(lib.tenon_model_transform, self._handle, options))

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Saves the model: FILE.onnx, FILE.tenon, or another `format` of `tenon convert`."""
        path = str(path)
        if format is None:
            format = {".onnx": "onnx", ".tenon": "tenon", ".relay": "relay"}.get(Path(path).suffix)
        if format is None:
            raise UsageError(f"cannot tell the format of '{path}'; give format='onnx', 'tenon', …")
        check(lib.tenon_model_save(self._handle, format.encode(), path.encode()))

    def text(self) -> str:
        """The graph in Tenon's text form, including weights."""
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder) / "model.tenon")
            return (Path(folder) / "model.tenon").read_text()

    def explain(self, node: str, **options: Any) -> dict[str, Any]:
        """Returns the reasons for a node's fusion, folding and layout, and its kernel with the reason of the choice."""
        return self._command("explain", node, options)

    def plan(self, budget: str | int | None = None, **options: Any) -> dict[str, Any]:
        """Plans memory, and minimizes time within a budget ("4GiB", "60%"). Options as of `tenon plan`:
        recompute, swap, split, device, frontier."""
        return self._command("plan", None, {"budget": budget, **options})

    def check(self) -> dict[str, Any]:
        """Returns all problems of the model."""
        with self._argument() as argument:
            code, out, messages = run_command("check", argument, "--format=json")
            if not out:
                raise error_of(code, messages)
            return json.loads(out)

    def profile(self, inputs: Mapping[str, Any] | Sequence[Any] | None = None, threads: int = 0, **options: Any) -> "Profile":
        """Runs the model and returns its profile. Options as of `tenon profile`: duration, iterations, …"""
        with self._argument() as argument, tempfile.TemporaryDirectory() as folder:
            page, saved = Path(folder) / "report.html", Path(folder) / "profile.json"
            words = [f"--report={page}", f"--save={saved}"]
            if inputs is not None:
                words.append(f"--input=@{self._input_file(inputs, folder)}")
            if threads:
                words.append(f"--threads={threads}")
            command("profile", argument, *words, *_words(options))
            return Profile(json.loads(saved.read_text()), page.read_text())

    def quantize(self, samples: Sequence[Mapping[str, Any] | Sequence[Any]] | None = None, scheme: str | None = None,
                 ranges: str | None = None, skip: Sequence[str] | None = None, target_error: float | None = None,
                 **options: Any) -> "Quantization":
        """Quantizes values and weights. `samples`: calibration inputs, by name or in order; by default random ones.
        `scheme`: "int8" (default), "int8-7bit", "int8-symmetric", or weights only, "w8:GROUP", "w4:GROUP". `ranges`: "mse",
        "kl", "percentile", "min-max". Other options as of `tenon quantize`."""
        with self._argument() as argument, tempfile.TemporaryDirectory() as folder:
            made, watched = Path(folder) / "quantized.tenon", Path(folder) / "samples"
            words = [f"--output={made}"]
            if samples is not None:
                watched.mkdir()
                for k, sample in enumerate(samples):
                    os.replace(self._input_file(sample, folder), watched / f"{k:06d}.npz")
                words.append(f"--calibrate=@{watched}")
            out = command("quantize", argument, "--format=json", *words,
                          *_words({"scheme": scheme, "ranges": ranges, "skip": skip, "target_error": target_error, **options}))
            return Quantization(load(made), json.loads(out))

    def train(self, data: Mapping[str, Any] | str = "synthetic", loss: str | None = None, optimizer: str | None = None,
              **options: Any) -> "Training":
        """Trains the model on arrays by the names of its inputs and "target" (or "synthetic" samples). Options as of
        `tenon train`: schedule, batch, epochs, steps, seed, validation_share, checkpoint, resume, threads, …"""
        with self._argument() as argument, tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "trained.onnx"
            words = [f"--output={made}"]
            if isinstance(data, str):
                words.append(f"--data={data}")
            else:
                np.savez(Path(folder) / "data.npz", **{name: as_array(array) for name, array in data.items()})
                words.append(f"--data=@{Path(folder) / 'data.npz'}")
            out = command("train", argument, "--format=json", *words,
                          *_words({"loss": loss, "optimizer": optimizer, **options}))
            return Training(Model(handle_from(lib.tenon_model_open, str(made).encode())), json.loads(out))

    def trainer(self, loss: str | None = None, optimizer: str | None = None, schedule: str | None = None,
                batch: int = 32, parameters: Sequence[str] | None = None, frozen: Sequence[str] | None = None,
                seed: int = 1, threads: int = 0) -> "Trainer":
        """Returns a training step, for custom training loops."""
        options = options_text({
            "loss": loss, "optimizer": optimizer, "schedule": schedule, "batch": batch,
            "parameters": list(parameters) if parameters else None, "frozen": list(frozen) if frozen else None,
            "seed": seed, "threads": threads})
        return Trainer(handle_from(lib.tenon_trainer_create, self._handle, options))

    def __repr__(self) -> str:
        ports = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return f"<tenon.Model {self.name or 'model'} ({ports[0]}) -> ({ports[1]})>"

    @contextmanager
    def _argument(self) -> Iterator[str]:
        """Yields the model as a command's argument: its source, or a temporary file."""
        if self._source is not None:
            yield self._source
            return
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model.tenon")
            check(lib.tenon_model_save(self._handle, b"tenon", path.encode()))
            yield path

    def _command(self, name: str, argument: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
        with self._argument() as model:
            words = [argument] if argument is not None else []
            return json.loads(command(name, model, *words, "--format=json", *_words(options)))

    def _input_file(self, inputs: Mapping[str, Any] | Sequence[Any], folder: str) -> str:
        if not isinstance(inputs, Mapping):
            inputs = {port.name: array for port, array in zip(self.inputs, inputs)}
        path = Path(folder) / "inputs.npz"
        np.savez(path, **{name: as_array(array) for name, array in inputs.items()})
        return str(path)


def _words(options: Mapping[str, Any]) -> list[str]:
    """Converts keyword arguments to the command's options: batch=8, resume=True, freeze=["a", "b"]."""
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            words.extend(f"{option}={item}" for item in value)
        else:
            words.append(f"{option}={value}")
    return words


@dataclass
class Profile:
    """A profile: `data` has the format of `tenon profile --save`. Displays itself in a notebook."""

    data: dict[str, Any]
    page: str = field(repr=False)

    @property
    def seconds(self) -> float:
        """Median milliseconds of a run."""
        return self.data["run_seconds"]["median"]

    @property
    def steps(self) -> list[dict[str, Any]]:
        return self.data["steps"]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves FILE.html, the page, or FILE.json, the data."""
        Path(path).write_text(self.page if str(path).endswith(".html") else json.dumps(self.data))

    def _repr_html_(self) -> str:
        escaped = self.page.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{escaped}" style="width: 100%; height: 720px; border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<tenon.Profile {len(self.steps)} steps, {1e3 * self.seconds:.3f} ms a run>"


@dataclass
class Quantization:
    """The quantized model, and `result`, the report of `tenon quantize`: errors by product and by output."""

    model: Model
    result: dict[str, Any]


@dataclass
class Training:
    """Result of training: the model and the learning curve."""

    model: Model
    result: dict[str, Any]

    @property
    def losses(self) -> list[float]:
        return [point["loss"] for point in self.result.get("training", [])]

    @property
    def validation(self) -> list[dict[str, Any]]:
        return self.result.get("validation", [])


class Trainer:
    """A training step and its states, for one thread at a time."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        description = json_from(lib.tenon_trainer_describe, handle)
        self.inputs = [_port(entry) for entry in description["inputs"]]
        self.outputs = [_port(entry) for entry in description["outputs"]]
        self.states = [_port(entry) for entry in description["states"]]

    def __del__(self) -> None:
        if lib is not None and hasattr(self, "_handle"):
            lib.tenon_trainer_free(self._handle)

    def step(self, *arrays: Any, **named: Any) -> dict[str, float]:
        """Runs one step on a batch, in the order of `inputs` or by name: {"loss": …, "accuracy": …}."""
        names = [port.name for port in self.inputs]
        given = dict(zip(names, arrays), **named)
        missing = [name for name in names if name not in given]
        unknown = [name for name in given if name not in names]
        if missing or unknown or len(arrays) > len(names):
            raise UsageError(f"a step takes {', '.join(names)}\n  missing   {', '.join(missing)}\n"
                             f"  unknown   {', '.join(unknown)}")
        tensors, alive = (CTensor * len(names))(), []
        for k, port in enumerate(self.inputs):
            tensors[k], kept = describe(fitting(as_array(given[port.name]), port.number, port.name), port.number)
            alive.append(kept)
        results = [np.empty(port.shape, port.dtype) for port in self.outputs]
        out = (CTensor * len(results))()
        for k, result in enumerate(results):
            out[k], kept = describe(result, self.outputs[k].number)
            alive.append(kept)
        check(lib.tenon_trainer_step(self._handle, tensors, len(names), out, len(results)))
        return {port.name: result.item() if result.size == 1 else result for port, result in zip(self.outputs, results)}

    def state(self, name: str) -> np.ndarray:
        """Returns a copy of a parameter or of an optimizer state."""
        tensor = CTensor()
        check(lib.tenon_trainer_state(self._handle, name.encode(), ctypes.byref(tensor)))
        return Memory(self, tensor).array().copy()

    def set_state(self, name: str, elements: Any) -> None:
        tensor, _alive = describe(np.ascontiguousarray(as_array(elements)))
        check(lib.tenon_trainer_set_state(self._handle, name.encode(), ctypes.byref(tensor)))

    def model(self) -> Model:
        """Returns the model with the current parameters."""
        return Model(handle_from(lib.tenon_trainer_model, self._handle))

    def save(self, folder: str | os.PathLike[str]) -> None:
        check(lib.tenon_trainer_save(self._handle, str(folder).encode()))

    def restore(self, folder: str | os.PathLike[str]) -> None:
        """Restores a checkpoint; training continues bit for bit as without the interruption."""
        check(lib.tenon_trainer_restore(self._handle, str(folder).encode()))


def load(source: str | os.PathLike[str] | bytes, threads: int = 0) -> Any:
    """Loads a model of any format: a file, "zoo:resnet50", or its bytes. FILE.tnn gives a Program."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        content = bytes(source)
        return Model(handle_from(lib.tenon_model_parse, content, len(content)))
    path = os.fspath(source)
    if path.endswith(".tnn"):
        return Program.load(path, threads)
    return Model(handle_from(lib.tenon_model_open, path.encode()), path)
