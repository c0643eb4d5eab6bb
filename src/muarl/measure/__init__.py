"""Simulated users, measured: 31 metrics of section 3 of the method's notes, and what watches a run.

A dialogue, an episode's or two people's, becomes a `Transcript`; a `View` reads it once (cues, facts
asked for and told, requests settled); every figure of the `catalogue` is a small function of views;
`measure` puts intervals around them that draw whole tasks. `monitors` watch the same figures from
iteration to iteration. Nothing here asks a model anything.
"""

from muarl.measure.catalogue import CATALOGUE as CATALOGUE
from muarl.measure.figure import Figure as Figure
from muarl.measure.table import Measured as Measured
from muarl.measure.table import measure as measure
from muarl.measure.transcript import Line as Line
from muarl.measure.transcript import Transcript as Transcript
from muarl.measure.view import View as View
