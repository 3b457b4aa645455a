"""Charts as Vega-Lite, through altair. Needs the extra ``report``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import altair as alt

from truecall.funnel import Step
from truecall.report.charts import style
from truecall.report.charts.kinds import (
    Chart,
    Dots,
    Estimate,
    Forest,
    Funnel,
    Heat,
    Scatter,
    Stack,
    percent,
)
from truecall.report.words import seen

Values = list[dict[str, Any]]

_SHARE: Final = alt.Scale(domain=[0, 1], nice=False)
_BAND: Final = alt.Scale(paddingInner=0.3, paddingOuter=0.15)
_PERCENT: Final = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
_BARE: Final = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1], grid=False)
_OPEN: Final = 0.35  # opacity of what is unknown
_WIDTH: Final = 420
_BAR: Final = 18


def spec(chart: Chart) -> dict[str, Any]:
    """The chart as a Vega-Lite specification, validated."""
    made: dict[str, Any] = _seen(_DRAWERS[type(chart)](chart).to_dict())
    made["config"] = style.config()
    longest = max((len(row[0]) for row in chart.grid().rows), default=0)
    spare = 10 + 1.4 * min(
        longest, style.LONGEST
    )  # the page's type may be wider than that which was measured
    made["padding"] = {"left": spare, "right": 24, "top": 4, "bottom": 4}
    return made


def _seen(value: Any) -> Any:
    """A specification whose texts hold nothing that can't be seen: a null character would end vl-convert."""
    if isinstance(value, dict):
        return {key: _seen(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_seen(item) for item in value]
    return seen(value) if isinstance(value, str) else value


def _base(values: Values) -> Any:
    return alt.Chart(alt.InlineData(values=values))


def _names(field: str, order: Sequence[str], **more: Any) -> alt.Y:
    """Groups down the side, in the order given."""
    axis = more.pop("axis", alt.Axis(grid=False, labelLimit=style.LABEL))
    return alt.Y(f"{field}:N", sort=list(order), title=None, axis=axis, **more)


# --------------------------------------------------------------------------- funnel


def _funnel(chart: Funnel) -> Any:
    names = style.labels(name for name, _ in chart.panels)
    width = 190 if len(chart.panels) > 1 else _WIDTH  # a panel with its names fits a phone
    panels = [_panel(names[name], steps, width) for name, steps in chart.panels]
    return alt.concat(*panels, columns=2, spacing={"row": 28, "column": 36})


def _panel(name: str, steps: Sequence[Step], width: int) -> Any:
    values: Values = [
        {
            "step": step.name,
            "sure": step.k / step.n if step.n else 0,
            "most": (step.k + step.unknown) / step.n if step.n else 0,
            "text": _reached(step),
            "none": 0,
            "all": 1,
        }
        for step in steps
    ]
    axis = alt.Axis(grid=False, labelLimit=90)
    base = _base(values).encode(y=_names("step", [s.name for s in steps], axis=axis))

    def bar(start: str, end: str, **mark: Any) -> Any:
        x = alt.X(f"{start}:Q", scale=_SHARE, title=None, axis=None)
        return base.mark_bar(height=_BAR, **mark).encode(x=x, x2=alt.X2(f"{end}:Q"))

    whole = bar("none", "all", opacity=0.5, color=style.tokens()["line"])
    sure = bar("none", "sure", color=style.series(0))
    unsure = bar("sure", "most", color=style.series(0), opacity=_OPEN)
    text = base.mark_text(align="left", dx=6).encode(
        x=alt.X("all:Q", scale=_SHARE, title=None, axis=None), text="text:N"
    )
    return alt.layer(whole, sure, unsure, text).properties(
        width=width, height=(_BAR + 8) * len(steps), title=name
    )


def _reached(step: Step) -> str:
    most = f" to {step.k + step.unknown}" if step.unknown else ""
    of = f" of {step.n} {step.unit}" if step.unit != "turns" else ""
    return f"{step.k}{most}{of}"


# --------------------------------------------------------------------------- rates


def _forest(chart: Forest) -> Any:
    groups = list(dict.fromkeys(e.group for e in (*chart.estimates, *chart.beside)))
    names = style.labels(groups)
    order = [names[group] for group in groups]
    height = (18 * len(chart.series) + 14) * len(groups)
    rates = _rates(chart, names, order).properties(width=_WIDTH - 40, height=height, title="rate of turns")
    beside = _beside(chart.beside, names, order).properties(
        width=120, height=height, title=chart.beside_title
    )
    return alt.hconcat(rates, beside, spacing=24)


def _rates(chart: Forest, names: dict[str, str], order: Sequence[str]) -> Any:
    values: Values = [_estimate(e, names) for e in chart.estimates]
    base = _base(values).encode(
        y=_names("group", order, scale=_BAND),
        yOffset=alt.YOffset("series:N", sort=list(chart.series), scale=alt.Scale(paddingInner=0.2)),
        color=alt.Color(
            "series:N",
            sort=list(chart.series),
            scale=alt.Scale(
                domain=list(chart.series), range=[style.series(i) for i in range(len(chart.series))]
            ),
            legend=alt.Legend(symbolOpacity=1),
        ),
    )
    x: dict[str, Any] = {"scale": _SHARE, "title": None, "axis": _PERCENT}
    defined = "isValid(datum.low)"
    rules = (
        base.transform_filter("isValid(datum.from)")
        .mark_rule(strokeWidth=1.5)
        .encode(x=alt.X("from:Q", **x), x2="to:Q")
    )
    bounds = (
        base.transform_filter(defined)
        .mark_bar(height=7, opacity=_OPEN)
        .encode(x=alt.X("low:Q", **x), x2="high:Q")
    )
    points = (
        base.transform_filter(f"{defined} && datum.low === datum.high")
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=alt.X("low:Q", **x),
            shape=alt.Shape(
                "series:N",
                sort=list(chart.series),
                scale=alt.Scale(domain=list(chart.series), range=list(style.SHAPES[: len(chart.series)])),
            ),
        )
    )
    nothing = (
        base.transform_filter(f"!{defined}")
        .mark_text(align="left", dx=3, fontSize=11)
        .encode(x=alt.X("none:Q", **x), text="text:N")
    )
    return alt.layer(rules, bounds, points, nothing)


def _beside(estimates: Sequence[Estimate], names: dict[str, str], order: Sequence[str]) -> Any:
    values: Values = [_estimate(e, names) for e in estimates]
    y = _names("group", order, axis=None, scale=_BAND)
    base = _base(values).encode(y=y)
    bar = base.mark_bar(height=12, color=style.tokens()["quiet"]).encode(
        x=alt.X("low:Q", scale=_SHARE, title=None, axis=alt.Axis(format="%", values=[0, 0.5, 1]))
    )
    text = base.mark_text(align="left", dx=4, fontSize=11).encode(x=alt.X("low:Q"), text="text:N")
    return alt.layer(bar, text)


def _estimate(e: Estimate, names: dict[str, str]) -> dict[str, Any]:
    low, high = e.interval or (None, None)
    text = "N/A" if e.low is None or e.high is None else percent(e.low)
    if e.low != e.high and e.high is not None:
        text = f"{text} to {percent(e.high)}"
    return {
        "group": names[e.group],
        "series": e.series,
        "low": e.low,
        "high": e.high,
        "from": low,
        "to": high,
        "text": text,
        "none": 0,
    }


def _dots(chart: Dots) -> Any:
    groups = list(dict.fromkeys(d.group for d in chart.dots))
    names = style.labels(groups)
    order = [names[group] for group in groups]
    panels = [_strip(chart, name, number, names, order) for number, name in enumerate(chart.series)]
    return alt.hconcat(*panels, spacing=28)


def _strip(chart: Dots, name: str, number: int, names: dict[str, str], order: Sequence[str]) -> Any:
    """One rate: the instances' own values, those that are alike beside each other; the mean as a line."""
    count: dict[tuple[str, float], int] = {}
    values: Values = []
    for dot in chart.dots:
        if dot.series == name:
            place = round(dot.value, 2)
            count[dot.group, place] = rank = count.get((dot.group, place), 0) + 1
            values.append({"group": names[dot.group], "value": dot.value, "rank": _aside(rank)})
    means: Values = [{"group": names[g], "mean": m} for g, s, m in chart.means if s == name and g in names]
    axis = None if number else alt.Axis(grid=True, labelLimit=style.LABEL)
    y = _names("group", order, axis=axis, scale=alt.Scale(domain=list(order)))
    x: dict[str, Any] = {
        "scale": alt.Scale(domain=[0, 1], nice=False, padding=8),
        "title": None,
        "axis": _PERCENT,
    }
    most = max(abs(v["rank"]) for v in values) if values else 1
    offset = alt.YOffset("rank:Q", scale=alt.Scale(domain=[-max(most, 3), max(most, 3)]))
    dots = (
        _base(values)
        .mark_point(filled=True, size=34, opacity=0.8, color=style.series(number))
        .encode(y=y, yOffset=offset, x=alt.X("value:Q", **x))
    )
    lines = (
        _base(means)
        .mark_tick(thickness=2, size=44, color=style.tokens()["ink"])
        .encode(y=y, x=alt.X("mean:Q", **x))
    )
    return alt.layer(lines, dots).properties(
        width=260, height=alt.Step(52, **{"for": "position"}), title=name
    )


def _aside(rank: int) -> int:
    """0, 1, -1, 2, -2 … for points that would lie upon each other."""
    return rank // 2 * (1 if rank % 2 == 0 else -1)


# --------------------------------------------------------------------------- tables of colour


def _heat(chart: Heat) -> Any:
    rows = style.labels(c.row for c in chart.cells)
    columns = style.labels(c.column for c in chart.cells)
    values: Values = []
    for cell in chart.cells:
        fill, ink = _coloured(chart, cell.value, cell.text)
        values.append(
            {
                "row": rows[cell.row],
                "column": columns[cell.column],
                "text": cell.text,
                "fill": fill,
                "ink": ink,
            }
        )
    turn = len(columns) > 1 and max(len(c) for c in columns.values()) > 14
    base = _base(values).encode(
        y=_names("row", list(rows.values())),
        x=alt.X(
            "column:N",
            sort=list(columns.values()),
            title=None,
            axis=alt.Axis(grid=False, orient="top", labelAngle=-35 if turn else 0, labelLimit=160),
        ),
    )
    squares = base.mark_rect(stroke=style.tokens()["paper"], strokeWidth=2).encode(
        color=alt.Color("fill:N", scale=None)
    )
    text = base.mark_text(fontSize=11).encode(text="text:N", color=alt.Color("ink:N", scale=None))
    texts = [cell.text for cell in chart.cells] + ([] if turn else list(columns.values()))
    wide = 7.5 * max(map(len, texts)) + 16
    return alt.layer(squares, text).properties(width=alt.Step(max(64, min(150, wide))), height=alt.Step(32))


def _coloured(chart: Heat, value: float | None, text: str) -> tuple[str, str]:
    if chart.scale == "tone":
        known = text in style.TONES
        return (
            (style.tone(text), style.tokens()["paper"])
            if known
            else (style.tokens()["line"], style.tokens()["ink"])
        )
    return (style.tokens()["line"], style.tokens()["ink"]) if value is None else style.shade(value)


def _stack(chart: Stack) -> Any:
    groups = list(dict.fromkeys(s.group for s in chart.slices))
    names, kinds = style.labels(groups), style.ordered(s.kind for s in chart.slices)
    values: Values = []
    for group in groups:
        own = [s for s in chart.slices if s.group == group]
        total, at = sum(s.count for s in own), 0
        for kind in kinds:
            count = sum(s.count for s in own if s.kind == kind)
            if count:
                share = count / total
                values.append(
                    {
                        "group": names[group],
                        "kind": kind,
                        "from": at / total,
                        "to": at / total + share,
                        "mid": at / total + share / 2,
                        "text": str(count) if share >= 0.06 else "",
                        "ink": style.ink(kind, kinds),
                    }
                )
                at += count
    base = _base(values).encode(y=_names("group", [names[g] for g in groups]))
    colour = alt.Color(
        "kind:N",
        sort=kinds,
        scale=alt.Scale(domain=kinds, range=[style.fill(k, kinds) for k in kinds]),
        legend=alt.Legend(symbolType="square"),
    )
    bars = base.mark_bar(height=24, stroke=style.tokens()["paper"], strokeWidth=1.5).encode(
        x=alt.X("from:Q", scale=_SHARE, title=f"share of {chart.unit}", axis=_BARE),
        x2="to:Q",
        color=colour,
    )
    text = base.mark_text(fontWeight=600).encode(
        x="mid:Q", text="text:N", color=alt.Color("ink:N", scale=None)
    )
    return alt.layer(bars, text).properties(width=_WIDTH + 100, height=alt.Step(36))


def _scatter(chart: Scatter) -> Any:
    names = style.labels(spot.name for spot in chart.spots)
    values: Values = []
    taken: dict[tuple[int, int], int] = {}
    for s in chart.spots:
        place = (round(s.x / 25), round(s.y / 4))
        taken[place] = lower = taken.get(place, -1) + 1 if s.told else 0
        values.append({"name": names[s.name], "x": s.x, "y": s.y, "label": s.y - 5 * lower, "told": s.told})
    scale = alt.Scale(domain=[0, 100], nice=False, padding=10)
    base = _base(values).encode(
        x=alt.X("x:Q", scale=scale, title=chart.x_title), y=alt.Y("y:Q", scale=scale, title=chart.y_title)
    )
    plain = base.transform_filter("!datum.told").mark_point(
        size=40, opacity=0.75, color=style.tokens()["quiet"]
    )
    told = base.transform_filter("datum.told").mark_point(
        filled=True, size=90, opacity=1, color=style.tokens()["bad"], shape="diamond"
    )
    text = (
        base.transform_filter("datum.told")
        .mark_text(align="left", dx=10)
        .encode(text="name:N", y=alt.Y("label:Q", scale=scale))
    )
    halo = text.copy().mark_text(align="left", dx=10, stroke=style.tokens()["paper"], strokeWidth=4)
    return alt.layer(plain, halo, told, text).properties(width=_WIDTH + 60, height=320)


_DRAWERS: Final[dict[type[Any], Callable[[Any], Any]]] = {
    Funnel: _funnel,
    Forest: _forest,
    Dots: _dots,
    Heat: _heat,
    Stack: _stack,
    Scatter: _scatter,
}
