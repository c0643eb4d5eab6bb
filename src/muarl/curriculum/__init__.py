"""Curricula: which tasks an iteration plays. None starves, and a resumed run draws as if undisturbed.

draw       tasks that waited longest first, then by weight; the bound on every task's wait
seen       what became of tasks, forgetting slowly, from the episodes alone
weights    weights by success near one half, by class of failure, by length
failures   how a dialogue failed, from its record
"""

from muarl.curriculum.draw import Curriculum as Curriculum
