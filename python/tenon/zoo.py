"""The built-in networks, with seeded weights: `tenon.zoo.resnet50(batch="N")`."""

from __future__ import annotations

from typing import Any, Callable

from ._model import Model, load

NAMES = ("resnet18", "resnet50", "alexnet", "vgg16", "mobilenet_v2", "unet572", "unet256", "squeezenet",
         "densenet121", "bert_base", "gpt2", "vit_b16", "lstm", "mlp")


def build(name: str, **parameters: Any) -> Model:
    """Builds a network by name; a text as parameter becomes a symbol, as batch="N"."""
    settings = ",".join(f"{key}={value}" for key, value in parameters.items())
    return load(f"zoo:{name}?{settings}" if settings else f"zoo:{name}")


def __getattr__(name: str) -> Callable[..., Model]:
    if name.startswith("_"):
        raise AttributeError(name)
    return lambda **parameters: build(name, **parameters)


def __dir__() -> list[str]:
    return [*NAMES, "build"]
