"""The loads, by name: each a module with `async def run(target: Target) -> Outcome`."""
