"""Evaluation: what a set of episodes says about a policy, and how surely."""

from muarl.evaluate.statistics import Interval as Interval
from muarl.evaluate.summary import EvalSummary as EvalSummary
from muarl.evaluate.summary import summarise as summarise
