"""Plots of a run as SVG that can be read on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from stackctl.smoke.judging import RunResult, summarize
from stackctl.smoke.scenario import Scenario

# Drawn in these two; a style in the file exchanges them where the reader's page is dark.
INK, LINE = "#1f2328", "#d0d7de"
DARK_INK, DARK_LINE = "#e6edf3", "#444c56"
# Told apart by colour-blind eyes, and of at least 3:1 on white and on black.
COLOURS = ("#0f7fbf", "#d55e00", "#169b72", "#b3679b", "#a6761d", "#767676")
NO_PLOTS = "no plots: matplotlib is not installed (pip install 'stackctl[plots]')"


def draw(scenario: Scenario, runs: Sequence[RunResult], folder: Path) -> list[str]:
    """One file per metric that the scenario wants to see; their names below `folder`. None without matplotlib."""
    try:
        import matplotlib.figure  # noqa: F401 - asked only whether it is there
    except ImportError:
        return []
    names = sorted({metric for run in runs for metric in run.metrics})
    drawn: list[str] = []
    for pattern in scenario.plots:
        metrics = [name for name in names if fnmatchcase(name, pattern)]
        if metrics:
            path = folder / "plots" / f"{pattern.replace('*', 'all')}.svg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_svg(scenario, runs, metrics), encoding="utf-8")
            drawn.append(path.relative_to(folder).as_posix())
    return drawn


def _svg(scenario: Scenario, runs: Sequence[RunResult], metrics: list[str]) -> str:
    """Groups of bars, one per case and metric, a bar per arm: the median, with every run as a dot."""
    import io

    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figures = summarize(runs)
    arms = [arm.name for arm in scenario.arms if any(run.arm == arm.name for run in runs)]
    groups = [(case.name, metric) for case in scenario.cases for metric in metrics if any((arm, case.name, metric) in figures for arm in arms)]
    settings = {"svg.fonttype": "none", "svg.hashsalt": scenario.name, "font.size": 9, "font.family": "sans-serif"}
    with rc_context({**settings, "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": INK}):
        width = min(12.0, max(5.0, 1.2 + 0.32 * len(arms) * len(groups)))
        figure = Figure(figsize=(width, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for place, arm in enumerate(arms):
            _draw_arm(axes, figures, groups, arm, place, len(arms))
        _dress(axes, scenario, groups, metrics)
        sink = io.StringIO()
        figure.savefig(sink, format="svg", transparent=True, metadata={"Date": None, "Title": scenario.title})
    return _readable(sink.getvalue())


def _draw_arm(axes: Any, figures: Any, groups: list[tuple[str, str]], arm: str, place: int, arms: int) -> None:
    colour = COLOURS[place % len(COLOURS)]
    width = 0.8 / arms
    spots = [(number + (place - (arms - 1) / 2) * width, figures.get((arm, *group))) for number, group in enumerate(groups)]
    known = [(x, spread) for x, spread in spots if spread is not None]
    axes.bar([x for x, _ in known], [spread.median for _, spread in known], width * 0.9, color=colour, label=arm)
    dots = [(x, value) for x, spread in known for value in spread.values]
    axes.scatter([x for x, _ in dots], [y for _, y in dots], s=9, color=INK, zorder=3)


def _dress(axes: Any, scenario: Scenario, groups: list[tuple[str, str]], metrics: list[str]) -> None:
    labels = [case if len(metrics) == 1 else metric.removeprefix("gap_").removesuffix("_ms") for case, metric in groups]
    axes.set_xticks(range(len(groups)), labels, rotation=0 if len(groups) < 6 else 40, ha="center" if len(groups) < 6 else "right")
    axes.set_ylabel(metrics[0] if len(metrics) == 1 else "ms")
    values = [patch.get_height() for patch in axes.patches if patch.get_height() > 0]
    if values and max(values) > 20 * min(values):
        _make_logarithmic(axes)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"{scenario.name}: median, and every run", fontsize=9, loc="left")
    axes.figure.legend(frameon=False, ncols=4, fontsize=8, loc="outside lower center")


def _make_logarithmic(axes: Any) -> None:
    """With ticks that are read as they stand: 20, 50, 100."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:g}")


def _readable(svg: str) -> str:
    """The file with its exchange of colours; an inline style gives way only to `!important`."""
    pairs = ((INK, DARK_INK), (LINE, DARK_LINE))
    rules = "".join(f'[style*="{kind}: {light}"]{{{kind}:{dark}!important}}' for light, dark in pairs for kind in ("fill", "stroke"))
    style = f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
    place = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:place]}{style}{svg[place:]}"
