"""Stand-ins for tests of dialogues, runs and domains, and faults to inject into them.

Without faults nothing here needs a model, an endpoint, or time. What can fail does so by a seeded
`FaultPlan`: an engine (`FaultyPolicy`), an HTTP endpoint (`http_server`), tool servers
(`FaultyToolServer`, `broken_serve`, `broken_server`), the disk (`FullDisk`). `cancel_everywhere`
cancels async work at each of its awaits. What one writes oneself is held to what everything of its kind
has to keep: `world_laws`, `user_laws`, `tool_server_laws`, `policy_laws`.
"""

from muarl.testing.cancelling import LivesOnError as LivesOnError
from muarl.testing.cancelling import at_wait as at_wait
from muarl.testing.cancelling import cancel_everywhere as cancel_everywhere
from muarl.testing.cancelling import cancelled_at as cancelled_at
from muarl.testing.clock import run_in_virtual_time as run_in_virtual_time
from muarl.testing.clock import virtual_time as virtual_time
from muarl.testing.episodes import build_episode as build_episode
from muarl.testing.episodes import build_key as build_key
from muarl.testing.faulty_journal import FullDisk as FullDisk
from muarl.testing.faulty_policy import POLICY_FAULTS as POLICY_FAULTS
from muarl.testing.faulty_policy import FaultyPolicy as FaultyPolicy
from muarl.testing.http_server import HTTP_FAULTS as HTTP_FAULTS
from muarl.testing.http_server import KEPT_FAULTS as KEPT_FAULTS
from muarl.testing.http_server import HttpServer as HttpServer
from muarl.testing.http_server import chat_answer as chat_answer
from muarl.testing.http_server import http_server as http_server
from muarl.testing.laws import LawError as LawError
from muarl.testing.laws import policy_laws as policy_laws
from muarl.testing.laws import tool_server_laws as tool_server_laws
from muarl.testing.laws import user_laws as user_laws
from muarl.testing.laws import world_laws as world_laws
from muarl.testing.plan import FaultPlan as FaultPlan
from muarl.testing.playing import play_agents as play_agents
from muarl.testing.policies import Say as Say
from muarl.testing.policies import ScriptedPolicy as ScriptedPolicy
from muarl.testing.servers import FaultyToolServer as FaultyToolServer
from muarl.testing.servers import broken_serve as broken_serve
from muarl.testing.servers import broken_server as broken_server
from muarl.testing.servers import sound_server as sound_server
from muarl.testing.users import ScriptedUserStub as ScriptedUserStub
