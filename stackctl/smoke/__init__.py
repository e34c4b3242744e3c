"""Smoke runs: an environment for one release, a server or a part of it, a load, a judgement."""
