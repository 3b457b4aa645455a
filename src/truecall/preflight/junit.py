"""A preflight as JUnit XML, for CI systems: one test case a probe, and one a finding's change."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from truecall.preflight.report import Report
from truecall.records import Finding

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> bytes:
    """The report as a JUnit document. Notes are no failures; unknown and skipped probes are skipped cases."""
    cases = [(p.name, p) for p in report.probes]
    by_probe: dict[str, list[Finding]] = {
        name: [f for f in report.findings if f.id in p.data.get("findings", ()) and f.severity != "note"]
        for name, p in cases
    }
    failures = sum(bool(found) for found in by_probe.values())
    skips = sum(p.state in ("unknown", "skipped") and not by_probe[name] for name, p in cases)
    suite = ET.Element(
        "testsuite",
        name="truecall preflight",
        tests=str(len(cases)),
        failures=str(failures),
        errors="0",
        skipped=str(skips),
        time=f"{report.spent.seconds:.3f}",
    )
    for name, probe in cases:
        case = ET.SubElement(suite, "testcase", classname="truecall.preflight", name=name)
        for found in by_probe[name]:
            failure = ET.SubElement(case, "failure", type=found.id, message=_clean(found.title))
            failure.text = _clean(_text(found))
        if not by_probe[name] and probe.state in ("unknown", "skipped"):
            ET.SubElement(case, "skipped", message=_clean(probe.said))
        ET.SubElement(case, "system-out").text = _clean(probe.said)
    ET.indent(suite)
    document: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document


def _text(found: Finding) -> str:
    parts = [
        ("part", str(found.part)),
        ("sent", found.sent),
        ("model wrote", found.wrote[:500]),
        ("client got", found.got),
        ("change", found.change),
        ("repeat", found.repeat),
    ]
    return "\n".join(f"{name}: {value}" for name, value in parts if value)


def _clean(text: str) -> str:
    """XML 1.0 holds no control characters: they become U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)
