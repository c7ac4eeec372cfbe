"""The door for the Model Context Protocol: tools and documents, over a pipe or over HTTP. Needs the extra ``mcp``."""
