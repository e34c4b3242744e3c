"""The nouns: stack, entry, plant, verdict, finding, ledger. Frozen dataclasses, no I/O."""
