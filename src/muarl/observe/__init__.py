"""Watching a run: counters, a structured log, spans. Nothing here changes what is watched."""

from muarl.observe.counters import Counters as Counters
from muarl.observe.log import RunLog as RunLog
from muarl.observe.observation import Observation as Observation
from muarl.observe.snapshot import Snapshot as Snapshot
