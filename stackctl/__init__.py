"""stackctl: carry a numbered stack of patches on a fork of SGLang, and lose no half of one."""

__version__ = "0.1.0"
