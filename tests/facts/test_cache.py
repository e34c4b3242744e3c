"""Facts by blob id: read once, safe for two, dropped with the format."""

import multiprocessing
import sqlite3

from stackctl.facts import cache as module
from stackctl.facts.cache import FactsCache

TEXT = b"def f(x):\n    return x\n"


def fill(path, start):
    cache = FactsCache(path)
    for number in range(start, start + 300):
        cache.statements(f"{number:040x}", lambda: TEXT)
    cache.close()


def test_a_file_is_read_once(tmp_path):
    path, reads = tmp_path / "facts.sqlite", []

    def read():
        reads.append(1)
        return TEXT

    for _ in range(2):
        cache = FactsCache(path)
        facts, problem = cache.statements("a" * 40, read)
        assert problem is None and facts[0].text == "def f"
        assert cache.names("a" * 40, read).functions["f"].parameters[0].name == "x"
        cache.close()
    assert len(reads) == 2  # once for statements, once for names


def test_what_cannot_be_parsed_is_remembered(tmp_path):
    cache = FactsCache(tmp_path / "f.sqlite")
    facts, problem = cache.statements("b" * 40, lambda: b"def f(:\n")
    assert facts == [] and "does not parse" in problem[0] and problem[1] == 1


def test_another_format_empties_it(tmp_path, monkeypatch):
    path = tmp_path / "f.sqlite"
    fill(path, 0)
    monkeypatch.setattr(module, "_FORMAT", "another")
    FactsCache(path).close()
    assert sqlite3.connect(path).execute("SELECT COUNT(*) FROM facts").fetchone() == (0,)


def test_it_does_not_grow_past_its_limit(tmp_path, monkeypatch):
    path = tmp_path / "f.sqlite"
    fill(path, 0)
    monkeypatch.setattr(module, "_LIMIT", 1)
    FactsCache(path).close()
    assert sqlite3.connect(path).execute("SELECT COUNT(*) FROM facts").fetchone() == (0,)


def test_two_processes_at_once(tmp_path):
    path = tmp_path / "f.sqlite"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=fill, args=(path, start)) for start in (0, 150)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert sqlite3.connect(path).execute("SELECT COUNT(*) FROM facts").fetchone() == (450,)


def test_a_broken_file_costs_nothing_but_time(tmp_path):
    path = tmp_path / "f.sqlite"
    path.write_bytes(b"this is no database" * 100)
    facts, _ = FactsCache(path).statements("c" * 40, lambda: TEXT)
    assert facts
