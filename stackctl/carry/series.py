"""Read a series of patches, from a folder or from commits, and make it entries of a stack.

The patch itself is kept byte for byte in patches/: it is the record. What its text says (a mail's
headers, DEP-3, Upstream-Status, "cherry picked from") becomes the entry's title, disposition and links,
each a proposal that a person may change.
"""

from __future__ import annotations

import contextlib
import email
import email.policy
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.model.stack import Disposition, Stack
from stackctl.trees.git import Repository
from stackctl.trees.replacing import Held, rewrite

_NAME = re.compile(r"(?P<stem>.+?)\.(?:patch|diff)(?P<mark>(?:\.[A-Z]+)?)\Z")
_NUMBERED = re.compile(r"(\d+)[-_. ]+(.+)")
# An entry's number as people write it, after tags such as [PATCH 1/3]: "[041] x", "#041 x", "041: x", "entry 41: x".
_SAID = re.compile(
    r"(?:\[(?!\d+\])[^\]]*\]\s*)*"
    r"(?:\[(?:entry\s*)?#?(\d{1,4})\]|#(\d{1,4})\b|(\d{1,4})\s*:(?=\s)|entry[\s_-]*#?(\d{1,4})\b)[-_\s:.]*(?=\S)(.+)",
    re.IGNORECASE,
)
_DIFF = re.compile(rb"^(?:diff --git |diff -|Index: |--- [^\n]*\n\+\+\+ )", re.MULTILINE)
_TAGS = re.compile(r"\s*\[[^\]]*\]\s*")
_SHA = re.compile(r"\b[0-9a-f]{7,40}\b")
_PULL = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/pull/(\d+)")
_URL = re.compile(r"https?://[^\s<>\])]+")
_PICKED = re.compile(r"(?:cherry[- ]picked from commit|back-?port(?:ed)? (?:of|from))\s+(.{1,200})", re.IGNORECASE)
_FIELD = re.compile(r"^(?:\w+:)?\s*([A-Z][A-Za-z-]+):\s*(.*)$")
_STACK = re.compile(r"^Stack-([A-Za-z-]+): (.+)$")
_LONGEST_NOTES = 4000

_MARKS = {
    "": None, ".OUTSIDE": None, ".CANDIDATE": Disposition.CANDIDATE, ".DISABLED": Disposition.CANDIDATE, ".WIP": Disposition.CANDIDATE,
    ".SUPERSEDED": Disposition.SUPERSEDED, ".RETIRED": Disposition.RETIRED, ".DROPPED": Disposition.RETIRED,
    ".OBSOLETE": Disposition.RETIRED,
}  # fmt: skip


@dataclass(frozen=True)
class Patch:
    """One patch of a series: its file name, its bytes, and what became of its name."""

    name: str
    data: bytes
    number: int = 0
    slug: str = ""
    mark: str = ""
    strip: int = 1

    @property
    def header(self) -> str:
        """What stands before the diff."""
        found = _DIFF.search(self.data)
        return self.data[: found.start() if found else len(self.data)].decode("utf-8", "replace").replace("\r\n", "\n")


@dataclass(frozen=True)
class Proposal:
    """What a patch's own text says of it: the manifest's words, to be confirmed by a person."""

    title: str
    disposition: Disposition
    decision: Mapping[str, Any]
    upstream: tuple[str, ...]
    notes: str


@dataclass(frozen=True)
class Imported:
    """The result of an import: the entries made, and what of the folder was left out and why."""

    names: tuple[str, ...]
    left_out: tuple[str, ...]


def read_folder(folder: Path) -> tuple[list[Patch], list[str]]:
    """The patches of a folder in order, and what was left out. Raises StackctlError if there is none."""
    if not folder.is_dir():
        raise StackctlError(
            "no such folder", str(folder), "name a folder of patches, or a range of commits: v0.5.11..fork"
        )
    listed = _series_file(folder)
    if listed is not None:
        return _numbered([replace(_read(folder, name), strip=strip) for name, strip in listed]), []
    patches, left_out = [], []
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        found = _NAME.match(path.name)
        if found and path.is_file() and found["mark"] in _MARKS:
            patches.append(_read(folder, path.name))
        elif found:
            left_out.append(f"{path.name}: suffix {found['mark']} is not known")
    numbered = [patch for patch in patches if _named(patch)]
    if numbered and not any(_NUMBERED.match(_stem(patch)) for patch in numbered):
        patches.sort(key=lambda patch: (_named(patch) or (0,))[0])  # "entry 100" comes after "entry 41"
    if numbered and len(numbered) < len(patches):  # a shell's [0-9]*.patch is what such a fork applies
        left_out += [f"{patch.name}: has no number, and the series has" for patch in patches if patch not in numbered]
        patches = numbered
    if not patches:
        raise StackctlError("no patches here (*.patch, *.diff, or a file named series)", str(folder))
    return _numbered(patches), left_out


def _series_file(folder: Path) -> list[tuple[str, int]] | None:
    """(name, levels to strip) of every line of quilt's `series` file, None if there is none."""
    path = folder / "series"
    if not path.is_file():
        return None
    rows = []
    for line in path.read_text("utf-8", "surrogateescape").splitlines():
        words = line.split("#")[0].split()
        if words:
            level = next((word[2:] for word in words[1:] if word.startswith("-p")), "1")
            rows.append((words[0], int(level) if level.isdigit() else 1))
    return rows


def _read(folder: Path, name: str) -> Patch:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise StackctlError(f"the series names {name}, which is not a file here", str(folder))
    found = _NAME.match(path.name)
    return Patch(path.name, path.read_bytes(), mark=found["mark"] if found and found["mark"] in _MARKS else "")


def _stem(patch: Patch) -> str:
    found = _NAME.match(patch.name)
    return found["stem"] if found else patch.name


def _named(patch: Patch) -> tuple[int, str] | None:
    """The number in a patch's file name, and the rest of it."""
    found = _NUMBERED.match(_stem(patch))
    return (int(found[1]), found[2]) if found else said_number(_stem(patch))


def said_number(text: str) -> tuple[int, str] | None:
    """The number that a subject or a name gives its entry, "[041] x" or "entry 41: x", and what it says beside it."""
    found = _SAID.match(text.strip())
    number = next((int(word) for word in found.groups()[:4] if word), 0) if found else 0
    return (number, found[5].strip()) if found and number else None


def _numbered(patches: Sequence[Patch]) -> list[Patch]:
    """The patches with number and slug: as their names say, else as their subjects say, else counted.

    Numbers count as said if all patches have one, in order. `git format-patch` counts from 1 in the names: where
    they do no more than that and every subject has a number, it is the subject's.
    """
    named, said = [_named(patch) for patch in patches], [_in_subject(patch) for patch in patches]
    counted = [(number, found[1] if found else _stem(patch)) for number, (patch, found) in enumerate(zip(patches, named, strict=True), 1)]
    chosen = next((rows for rows in (named, said) if (kept := _in_order(rows)) and kept != counted), None)
    rows = _in_order(chosen or ()) or counted
    return [replace(patch, number=number, slug=_slug(slug)) for patch, (number, slug) in zip(patches, rows, strict=True)]


def _in_order(rows: Sequence[tuple[int, str] | None]) -> list[tuple[int, str]]:
    """The rows if all of them are numbered, ascending; else none."""
    known = [row for row in rows if row]
    numbers = [number for number, _ in known]
    return known if len(known) == len(rows) and numbers == sorted(set(numbers)) else []


def _in_subject(patch: Patch) -> tuple[int, str] | None:
    return said_number(_fields(patch.header)[0].get("subject", ""))


def renumbered(patches: Sequence[Patch]) -> list[str]:
    """What to say of patches that are entries of another number than their subject, or else their name, says."""
    found = [(patch, _in_subject(patch) or _named(patch)) for patch in patches]
    return [f"{patch.name} says {said[0]} and is entry {patch.number}" for patch, said in found if said and said[0] != patch.number]


def _slug(text: str) -> str:
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
    return plain[:60].strip("-.") or "patch"


def read_range(repository: Repository, commits: str) -> list[Patch]:
    """One patch for each commit of a range, oldest first. Raises StackctlError for a merge in it."""
    if commits.startswith("-"):
        raise StackctlError(f"{commits!r} is not a range of commits")
    ids = repository.text("rev-list", "--reverse", "--topo-order", commits, "--").split()
    if not ids:
        raise StackctlError(f"no commits in {commits}", str(repository.path))
    datas, subjects = [], []
    for commit in ids:
        if len(repository.parents(commit)) != 1:
            raise StackctlError(
                f"{commit[:12]} is a merge or a root",
                commits,
                "import a straight line of commits: git rebase, git format-patch",
            )
        subjects.append(repository.text("log", "-1", "--format=%s", commit))
        datas.append(repository.run(
            "format-patch", "-1", "--stdout", "--no-signature", "--full-index", "--binary", "--no-renames", "--no-ext-diff",
            "--no-textconv", "--zero-commit", "-p", "--no-stat", commit,
        ))  # fmt: skip
    rows = _in_order([said_number(subject) for subject in subjects]) or list(enumerate(subjects, 1))
    slugs = [(number, _slug(text)) for number, text in rows]
    return [Patch(f"{n:04d}-{slug}.patch", data, n, slug) for (n, slug), data in zip(slugs, datas, strict=True)]


def diff_start(data: bytes) -> int:
    """Where a patch's diff begins, after whatever it says."""
    found = _DIFF.search(data)
    return found.start() if found else len(data)


def _exported(header: str) -> Proposal | None:
    """What `stackctl export` wrote into a patch, if it did: the entry as it was."""
    said: dict[str, Any] = {}
    lines = header.split("\n")
    for line in lines:
        if found := _STACK.match(line):
            with contextlib.suppress(ValueError):
                said[found[1].lower().replace("-", "_")] = json.loads(found[2])
    if "disposition" not in said or said["disposition"] not in list(Disposition):
        return None
    disposition, title, upstream = (
        Disposition(said.pop("disposition")),
        str(said.pop("title", "")),
        said.pop("upstream", []),
    )
    body = header.partition("\n\n")[2].partition("\nStack-Title: ")[0]
    return Proposal(title, disposition, said, tuple(map(str, upstream)), body.strip("\n"))


def propose(patch: Patch) -> Proposal:
    """Title, disposition and links as the patch's own text has them."""
    header = patch.header
    if exported := _exported(header):
        return exported
    fields, prose = _fields(header)
    title = _title(patch, fields)
    decision = _disposition(patch, fields, header)
    pulls = dict.fromkeys(f"{found[1]}#{found[2]}" for found in _PULL.finditer(header))
    return Proposal(title, decision[0], decision[1], tuple(pulls), prose[:_LONGEST_NOTES])


def _fields(header: str) -> tuple[dict[str, str], str]:
    """The header's fields, of a mail or of DEP-3, by lower-case name, and its prose."""
    text = header.partition("\n")[2] if header.startswith("From ") else header
    message = email.message_from_string(text, policy=email.policy.default)
    fields: dict[str, str] = {}
    for name in message.keys():  # noqa: SIM118 - a message is no mapping
        with contextlib.suppress(Exception):  # a header that email cannot decode is prose to us
            fields.setdefault(name.lower(), " ".join(str(message[name]).split()))
    prose = str(message.get_payload()) if fields else text
    lines = [line.lstrip("#").strip() if line.startswith("#") else line.rstrip() for line in prose.split("\n")]
    for line in lines:
        if found := _FIELD.match(line):
            fields.setdefault(found[1].lower(), found[2].strip())
    return fields, "\n".join(lines).split("\n---\n")[0].strip("\n- ")


def _title(patch: Patch, fields: Mapping[str, str]) -> str:
    subject = fields.get("subject", "")
    found = said_number(subject)
    subject = found[1] if found and found[0] == patch.number else subject
    said = _TAGS.sub(" ", subject or fields.get("description", "")).strip()
    plain = "".join(char for char in said if char.isprintable())
    return plain[:200].strip() or re.sub(r"[-_]+", " ", patch.slug).strip().capitalize()


def _disposition(patch: Patch, fields: Mapping[str, str], header: str) -> tuple[Disposition, dict[str, str]]:
    """What to propose, with the keys that the disposition requires."""
    mark = _MARKS.get(patch.mark)
    if mark is Disposition.SUPERSEDED:
        return mark, {
            "superseded_by": _after(header, "superseded by") or "not said",
            "evidence": f"the series names it {patch.name}",
        }
    if mark is not None:
        return mark, {"reason": f"the series names it {patch.name}"}
    return _upstream_status(fields) or _dep3(fields) or _picked(header) or _carried(fields, header)


def _after(header: str, words: str) -> str:
    found = re.search(rf"{words}:?\s+(\S.{{0,200}})", header, re.IGNORECASE)
    return found[1].strip() if found else ""


def _upstream_status(fields: Mapping[str, str]) -> tuple[Disposition, dict[str, str]] | None:
    """Yocto's header: Pending, Submitted [where], Backport [from], Denied, Inappropriate [why]."""
    said = fields.get("upstream-status", "")
    word, _, rest = said.partition(" ")
    where = rest.strip("[] ") or said
    if word.lower() == "backport":
        return Disposition.BACKPORT, {"commit": _commit(rest) or where}
    if word.lower() == "submitted":
        return Disposition.SUBMITTED, {"url": (found[0] if (found := _URL.search(rest)) else where)}
    if word.lower() in ("denied", "inappropriate"):
        return Disposition.PERMANENT, {"reason": said}
    return None


def _dep3(fields: Mapping[str, str]) -> tuple[Disposition, dict[str, str]] | None:
    """Debian's header: Origin, Forwarded, Applied-Upstream."""
    if applied := fields.get("applied-upstream", ""):
        return Disposition.BACKPORT, {"commit": _commit(applied) or applied}
    origin = fields.get("origin", "")
    if origin.lower().startswith(("upstream", "backport")):
        return Disposition.BACKPORT, {"commit": _commit(origin) or origin}
    forwarded = fields.get("forwarded", "")
    if found := _URL.match(forwarded):
        return Disposition.SUBMITTED, {"url": found[0]}
    return (Disposition.PERMANENT, {"reason": "Forwarded: not-needed"}) if forwarded.lower() == "not-needed" else None


def _picked(header: str) -> tuple[Disposition, dict[str, str]] | None:
    found = _PICKED.search(header)
    if not found:
        return None
    return Disposition.BACKPORT, {"commit": _commit(found[1]) or found[1].strip(" .)")}


def _commit(text: str) -> str:
    """The commit, or else the address, that a text names."""
    sha = next((each for each in _SHA.findall(text) if not each.isdigit()), "")
    url = _URL.search(text)
    return sha or (url[0] if url else "")


def _carried(fields: Mapping[str, str], header: str) -> tuple[Disposition, dict[str, str]]:
    if found := re.search(r"submitted (?:upstream )?(?:as|in|at):?\s+(https?://\S+)", header, re.IGNORECASE):
        return Disposition.SUBMITTED, {"url": found[1].rstrip(".,)")}
    reason = fields.get("description", "") or "imported; the patch's own text says no more"
    return Disposition.CARRY, {
        "reason": reason[:400],
        "remove_when": "not said: proposed at import, for a person to fill in",
    }


def write_entries(
    root: Path, stack: Stack, patches: Sequence[Patch], base: str, left_out: Mapping[int, Sequence[str]],
) -> Imported:  # fmt: skip
    """Write one entry for each patch, all or none. Raises StackctlError if a number or a name is taken."""
    taken = [entry.name for entry in stack.entries for patch in patches if entry.number == patch.number]
    taken += [f"patches/{patch.name}" for patch in patches if os.path.lexists(root / "patches" / patch.name)]
    if taken:
        raise StackctlError(
            f"already in the stack: {', '.join(taken[:5])}",
            str(root),
            "import into another stack, or renumber this one first",
        )
    names = [f"{patch.number:03d}-{patch.slug}" for patch in patches]
    files: dict[str, Held | bytes | None] = {}
    for name, patch in zip(names, patches, strict=True):
        text = manifest(patch, base, left_out.get(patch.number, ()))
        files |= {f"patches/{patch.name}": patch.data, f"entries/{name}/entry.toml": text.encode("utf-8", "replace")}
    rewrite(root, files)
    return Imported(tuple(names), ())


def manifest(patch: Patch, base: str, left_out: Sequence[str] = ()) -> str:
    """The text of an imported entry's entry.toml."""
    said = propose(patch)
    rows: list[tuple[str, object]] = [
        ("number", patch.number), ("title", said.title), ("upstream", list(said.upstream)),
        ("disposition", str(said.disposition)), *said.decision.items(), ("notes", said.notes),
    ]  # fmt: skip
    plant: list[tuple[str, object]] = [
        ("id", "patch"), ("kind", "series"), ("patch", patch.name), ("base", base),
        ("strip", patch.strip if patch.strip != 1 else ""), ("leave_out", list(left_out)),
    ]  # fmt: skip
    return _toml(rows) + "\n[[plant]]\n" + _toml(plant)


def _toml(rows: Sequence[tuple[str, object]]) -> str:
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in rows if value not in ("", [], ()))


def toml_value(value: object) -> str:
    """A string, number or list of strings as TOML. JSON's strings are TOML's, but for DEL and lone surrogates."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        clean = value.encode("utf-8", "replace").decode()
        return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007F")
    return str(value)


def diffs_of(data: bytes) -> Iterator[tuple[str, str]]:
    """(old path, new path) of every file of a patch, "" for /dev/null, as `git apply` reads them with -p1."""
    from stackctl.plants.hunk import unquoted

    for block in (
        re.split(rb"^(?=diff --git )", data, flags=re.MULTILINE) if b"\ndiff --git " in b"\n" + data else _plain(data)
    ):
        old, new = _names(block)
        if old is not None and new is not None:
            yield tuple("" if name == "/dev/null" else name.partition("/")[2] for name in map(unquoted, (old, new)))  # type: ignore[misc]


def _plain(data: bytes) -> list[bytes]:
    return re.split(rb"^(?=--- [^\n]*\n\+\+\+ )", data, flags=re.MULTILINE)


def _names(block: bytes) -> tuple[str | None, str | None]:
    found = [re.search(pattern, block, re.MULTILINE) for pattern in (rb"^--- ([^\n\t]+)", rb"^\+\+\+ ([^\n\t]+)")]
    if all(found):
        return found[0][1].decode("latin-1").strip(), found[1][1].decode("latin-1").strip()  # type: ignore[index]
    return None, None
