"""The answers of an environment, for the person at the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from stackctl.model.probe import Probe, State, Told
from stackctl.model.report import Report
from stackctl.probes.asking import Asking
from stackctl.reports.markdown import headline
from stackctl.reports.terminal import plain

_COLOURS = {Told.PRESENT: "green", Told.ABSENT: "yellow", Told.NOT_JUDGED: "red"}
_STATES = {
    State.ACTIVE: "green",
    State.INERT: "yellow",
    State.DUE_AGAIN: "cyan",
    State.PUT_OFF: "dim",
    State.NOT_JUDGED: "red",
}


def render_probes(asking: Asking, report: Report, probes: Mapping[str, Probe]) -> None:
    """Answers, entries, changes, one closing line."""
    console = Console(highlight=False, soft_wrap=True)
    if asking.problem:
        console.print(f"[red]not-judged[/] {plain(asking.problem)}")
    if not asking.answers:
        console.print("no probe is in checks/probes: how to write one: stackctl explain probe", style="dim")
    for answer in asking.answers:
        console.print(
            f"[{_COLOURS[answer.told]}]{answer.told:<10}[/] {plain(answer.probe)}: {plain(probes[answer.probe].title)}"
        )
        console.print(f"           {plain(answer.evidence)}", style="dim")
    for state in asking.states:
        console.print(f"[{_STATES[state.state]}]{state.state:<10}[/] entry {state.entry}: {plain(state.why)}")
    for change in report.summary["changed"]:
        name = f"probe {change['probe']}" if "probe" in change else f"entry {change['entry']}"
        console.print(f"changed    {plain(name)}: {plain(change['before'])} -> {plain(change['after'])}")
    console.print(f"probe: {headline(report)}")
