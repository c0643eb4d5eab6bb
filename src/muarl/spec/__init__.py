"""Specs: typed models of every file a person writes, and the loader that names lines."""

from muarl.spec.domain import DomainSpec as DomainSpec
from muarl.spec.domain import PersonaSpec as PersonaSpec
from muarl.spec.domain import UserScriptSpec as UserScriptSpec
from muarl.spec.dump import dump_spec as dump_spec
from muarl.spec.grpo import GrpoSpec as GrpoSpec
from muarl.spec.knobs import KnobsSpec as KnobsSpec
from muarl.spec.load import load_domain_spec as load_domain_spec
from muarl.spec.load import load_run as load_run
from muarl.spec.load import load_spec as load_spec
from muarl.spec.load import load_task_files as load_task_files
from muarl.spec.load import load_tasks_file as load_tasks_file
from muarl.spec.located import Located as Located
from muarl.spec.perturb import PerturbSpec as PerturbSpec
from muarl.spec.predicate import PredicateSpec as PredicateSpec
from muarl.spec.predicate import RewardFile as RewardFile
from muarl.spec.run import RunSpec as RunSpec
from muarl.spec.task import FactSpec as FactSpec
from muarl.spec.task import GoldCallSpec as GoldCallSpec
from muarl.spec.task import RequestSpec as RequestSpec
from muarl.spec.task import TasksFile as TasksFile
from muarl.spec.task import TaskSpec as TaskSpec
from muarl.spec.task import UserGoalSpec as UserGoalSpec
from muarl.spec.tools import CommandToolsSpec as CommandToolsSpec
from muarl.spec.tools import PythonToolsSpec as PythonToolsSpec
from muarl.spec.tools import ToolsSpec as ToolsSpec
from muarl.spec.tools import UrlToolsSpec as UrlToolsSpec
