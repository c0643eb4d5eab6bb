"""Rewards: predicates over a world and an episode, as pure functions."""

from muarl.reward.predicates import Evidence as Evidence
from muarl.reward.predicates import Verdict as Verdict
from muarl.reward.predicates import evaluate as evaluate
from muarl.reward.predicates import judge as judge
from muarl.reward.predicates import reward_of as reward_of
