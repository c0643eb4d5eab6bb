"""A domain at work: its spec, its world, its tool servers, its tasks, its users."""

from muarl.domain.domain import Domain as Domain
from muarl.domain.domain import load_domain as load_domain
from muarl.domain.expert import Agent as Agent
