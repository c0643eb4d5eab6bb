"""Records: what a finished dialogue leaves behind, and the journal that keeps it on disk."""

from muarl.record.episode import NOT_MADE as NOT_MADE
from muarl.record.episode import TRAIN as TRAIN
from muarl.record.episode import UNLISTED as UNLISTED
from muarl.record.episode import Episode as Episode
from muarl.record.episode import EpisodeHead as EpisodeHead
from muarl.record.episode import EpisodeKey as EpisodeKey
from muarl.record.episode import Outcome as Outcome
from muarl.record.episode import Perturbed as Perturbed
from muarl.record.episode import PredicateResult as PredicateResult
from muarl.record.episode import Turn as Turn
from muarl.record.episode import Usage as Usage
from muarl.record.episode import UserReply as UserReply
from muarl.record.episode import changes_of as changes_of
from muarl.record.journal import JournalWriter as JournalWriter
from muarl.record.journal import Stored as Stored
from muarl.record.journal import read_at as read_at
from muarl.record.journal import read_heads as read_heads
from muarl.record.journal import read_journal as read_journal
from muarl.record.journal import read_stored as read_stored
from muarl.record.journal import torn_bytes as torn_bytes
from muarl.record.reading import StoredEpisodes as StoredEpisodes
from muarl.record.sample import Sample as Sample
from muarl.record.sample import Span as Span
