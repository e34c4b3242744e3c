"""What runs inside the environment of a smoke run: SGLang's own Python, not stackctl's.

This folder's parent goes on PYTHONPATH behind the tree under test. Nothing here imports stackctl.
"""
