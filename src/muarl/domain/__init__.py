"""A domain at work: its spec, its world, its tool servers, its tasks, its users."""

from muarl.domain.domain import Agent as Agent
from muarl.domain.domain import Domain as Domain
from muarl.domain.domain import load_domain as load_domain
