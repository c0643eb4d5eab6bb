"""Tools: MCP servers, one session per dialogue, over that dialogue's world."""

from muarl.tools.build import tool_server as tool_server
from muarl.tools.protocol import ToolServer as ToolServer
from muarl.tools.protocol import ToolSession as ToolSession
from muarl.tools.protocol import sharing as sharing
