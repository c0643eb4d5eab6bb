"""Records: what a finished dialogue leaves behind, and the journal that keeps it on disk."""

from muarl.record.episode import Episode as Episode
from muarl.record.episode import EpisodeHead as EpisodeHead
from muarl.record.episode import PredicateResult as PredicateResult
from muarl.record.journal import JournalWriter as JournalWriter
from muarl.record.journal import Stored as Stored
from muarl.record.journal import read_at as read_at
from muarl.record.journal import read_heads as read_heads
from muarl.record.journal import read_journal as read_journal
from muarl.record.journal import read_stored as read_stored
from muarl.record.journal import torn_bytes as torn_bytes
from muarl.record.key import TRAIN as TRAIN
from muarl.record.key import EpisodeKey as EpisodeKey
from muarl.record.key import Outcome as Outcome
from muarl.record.reading import StoredEpisodes as StoredEpisodes
from muarl.record.sample import Sample as Sample
from muarl.record.sample import Span as Span
from muarl.record.turn import NOT_MADE as NOT_MADE
from muarl.record.turn import UNLISTED as UNLISTED
from muarl.record.turn import Perturbed as Perturbed
from muarl.record.turn import Turn as Turn
from muarl.record.turn import Usage as Usage
from muarl.record.turn import UserReply as UserReply
from muarl.record.turn import changes_of as changes_of
