"""Prove a domain sound without any model: what an author wants to know before training on it."""

from muarl.data.proof.finding import Check as Check
from muarl.data.proof.finding import ProofFinding as ProofFinding
from muarl.data.proof.finding import Subject as Subject
from muarl.data.proof.fuzz import Fuzzed as Fuzzed
from muarl.data.proof.play import Means as Means
from muarl.data.proof.prove import Proof as Proof
from muarl.data.proof.prove import prove as prove
