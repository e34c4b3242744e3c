"""Which packages the front end of a release needs on a machine without a GPU.

Read from the release's own METADATA, so that the pins follow it: 0.5.21 wants transformers 5.12.1 with
tokenizers 0.22.2, 0.5.22 wants 5.19.0 with 0.23.2, 0.5.23 another openai. Most of a wheel's requirements
are GPU kernels; what is not named here is left out, until an import asks for it (`provider`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.parser import HeaderParser

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from stackctl.model.errors import StackctlError

# Requirements that the front end imports, on a CPU. Versions are the release's own.
_NEEDED = """
    aiohttp apache-tvm-ffi einops fastapi gguf ipython msgspec numpy openai openai-harmony orjson packaging
    partial-json-parser pillow prometheus-client psutil pybase64 pydantic python-multipart pyzmq requests
    sentencepiece setproctitle soundfile tokenizers transformers uvicorn uvloop
"""
NEEDED = frozenset(_NEEDED.split())
# Imported too, but their own requirements bring triton and CUDA: installed without those.
ALONE = frozenset({"compressed-tensors", "xgrammar"})
# Imported by the front end or by ALONE, and named by no requirement of the wheel.
UNDECLARED = ("dill", "jsonschema", "loguru")
# Where the module is not called as its distribution is.
_MODULES = {
    "multipart": "python-multipart",
    "pil": "pillow",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
    "dateutil": "python-dateutil",
}


@dataclass(frozen=True)
class PackageSet:
    """What pip is asked for: `full` with dependencies, `alone` without."""

    full: tuple[str, ...]
    alone: tuple[str, ...]


def requirements(metadata: str) -> Iterator[Requirement]:
    """The requirements of a METADATA text that hold for this Python and platform, without extras."""
    for text in HeaderParser().parsestr(metadata).get_all("Requires-Dist", []):
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise StackctlError(f"a requirement that cannot be read: {text!r}", "METADATA", str(error)) from error
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


def package_set(metadata: str, torch: str) -> PackageSet:
    """The CPU-only set of the release whose METADATA this is; `torch` is a requirement, any build serves.

    Raises StackctlError where the text names neither transformers nor tokenizers: it is not a release's.
    """
    declared = {canonicalize_name(requirement.name): requirement for requirement in requirements(metadata)}
    if not {"transformers", "tokenizers"} <= declared.keys():
        raise StackctlError("transformers and tokenizers are not among its requirements", "METADATA")
    full = [plain(declared[name]) for name in sorted(NEEDED & declared.keys())]
    alone = [plain(declared[name]) for name in sorted(ALONE & declared.keys())]
    return PackageSet((torch, *full, *UNDECLARED), tuple(alone))


def plain(requirement: Requirement) -> str:
    """Name and version only: the marker has been judged, and extras would bring what has no CPU form."""
    return f"{canonicalize_name(requirement.name)}{requirement.specifier}"


def provider(module: str, metadata: Iterable[str]) -> str | None:
    """The requirement, of any of these distributions, that brings the top-level module; None if none does."""
    top = module.partition(".")[0].lower()
    wanted = canonicalize_name(_MODULES.get(top, top))
    for text in metadata:
        for requirement in requirements(text):
            if canonicalize_name(requirement.name) == wanted:
                return plain(requirement)
    return None


def missing_module(stderr: str) -> str | None:
    """The module that a failed import says it lacks; None if it failed for another reason."""
    found = re.findall(r"^ModuleNotFoundError: No module named '([\w.]+)'", stderr, re.MULTILINE)
    return found[-1] if found else None
