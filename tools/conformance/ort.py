"""ONNX Runtime as a judge: models and arrays in, arrays out. It runs in a node process (npm's onnxruntime-node), so that
a crash is a verdict about one model only.
"""
import base64
import json
import pathlib
import subprocess

import numpy as np

WORKER = pathlib.Path(__file__).resolve().parent / "ort.js"
ELEMENTS = {"float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"}


class Refused(Exception):
    """ONNX Runtime refused the model or its inputs."""


def install(folder):
    """Installs onnxruntime-node with npm into `folder` unless it is there, and returns the folder."""
    folder = pathlib.Path(folder)
    if not (folder / "node_modules/onnxruntime-node").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        # Without install scripts: the package contains the CPU library, and its script would download those for GPUs.
        subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "onnxruntime-node"],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder


def packed(array):
    if array.dtype == object:
        return {"type": "string", "dims": array.shape, "strings": [str(x) for x in array.ravel()]}
    if str(array.dtype) not in ELEMENTS:
        raise Refused(f"no tensor of {array.dtype}")
    return {"type": str(array.dtype), "dims": array.shape,
            "bytes": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}


def unpacked(entry):
    if entry["type"] == "string":
        return np.array(entry["strings"], dtype=object).reshape(entry["dims"])
    if entry["type"] not in ELEMENTS:
        raise Refused(f"no tensor of {entry['type']}")
    return np.frombuffer(base64.b64decode(entry["bytes"]), dtype=entry["type"]).reshape(entry["dims"])


class OnnxRuntime:
    def __init__(self, folder):
        self.folder, self.process, self.loaded = pathlib.Path(folder), None, None

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None

    def _ask(self, question):
        if not self.process:
            self.process = subprocess.Popen(["node", WORKER, self.folder / "node_modules/onnxruntime-node"], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self.process.wait()
            self.process = self.loaded = None
            raise Refused(f"ONNX Runtime ended with code {code}")
        answer = json.loads(answer)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def run(self, model, inputs, outputs):
        """Runs a serialized model and returns the named outputs."""
        feeds = {name: packed(value) for name, value in inputs.items()}
        if self.loaded != model:
            self.loaded = None
            self._ask({"model": base64.b64encode(model).decode()})
            self.loaded = model
        given = self._ask({"inputs": feeds, "outputs": outputs})
        return [unpacked(given[name]) for name in outputs]
