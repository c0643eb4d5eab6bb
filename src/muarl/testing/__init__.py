"""Stand-ins for tests of dialogues, runs and domains: no model, no endpoint, no waiting."""

from muarl.testing.clock import run_in_virtual_time as run_in_virtual_time
from muarl.testing.clock import virtual_time as virtual_time
from muarl.testing.episodes import build_episode as build_episode
from muarl.testing.episodes import build_key as build_key
from muarl.testing.policies import Say as Say
from muarl.testing.policies import ScriptedPolicy as ScriptedPolicy
from muarl.testing.servers import broken_server as broken_server
from muarl.testing.servers import sound_server as sound_server
from muarl.testing.users import ScriptedUserStub as ScriptedUserStub
