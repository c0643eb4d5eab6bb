"""Rendering: messages to token ids and sampled ids back to messages; never the other way round."""

from muarl.render.prompted import in_convention as in_convention
from muarl.render.renderer import Renderer as Renderer
from muarl.render.tokenizer import TextTokenizer as TextTokenizer
from muarl.render.tokenizer import train_tokenizer as train_tokenizer
