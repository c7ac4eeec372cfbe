"""Tools for agents: what a language model calls to search a knowledge base in a loop."""

from recollect.tools.base import Parameter, Tool, ToolFormat, ToolResult
from recollect.tools.toolbox import KNOWLEDGE_SEARCH, TOOLS, RAGTool, Toolbox

__all__ = ["KNOWLEDGE_SEARCH", "TOOLS", "Parameter", "RAGTool", "Tool", "ToolFormat", "ToolResult", "Toolbox"]
