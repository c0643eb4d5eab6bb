"""Rewards: predicates over a world and an episode."""

from muarl.reward.evidence import Call as Call
from muarl.reward.evidence import Evidence as Evidence
from muarl.reward.evidence import Finding as Finding
from muarl.reward.evidence import Judges as Judges
from muarl.reward.evidence import transcript_of as transcript_of
from muarl.reward.judges import EndpointJudges as EndpointJudges
from muarl.reward.judges import LenientJudges as LenientJudges
from muarl.reward.verdict import Verdict as Verdict
from muarl.reward.verdict import evaluate as evaluate
from muarl.reward.verdict import judge as judge
from muarl.reward.verdict import reward_of as reward_of
