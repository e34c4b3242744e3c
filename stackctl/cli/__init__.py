"""One module per command: parse, call, render, exit."""
