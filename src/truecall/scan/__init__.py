"""``truecall scan``: other people's logs, counted: emission, and where a log tells, delivery and uptake.

`scan` is the public door; `judge_turn` judges one turn; `Tally` is what is counted and adds up over workers.
"""

from __future__ import annotations

from truecall.scan.kernel import judge_turn
from truecall.scan.outcome import Outcome, outcome_of
from truecall.scan.run import ScanOptions, scan
from truecall.scan.tally import Tally

__all__ = ["Outcome", "ScanOptions", "Tally", "judge_turn", "outcome_of", "scan"]
