"""Optimizer: rules that rewrite plans to lower their cost without changing results. Each rule has its own file.

RULES in driver.py lists the rules. Not part of the public API; users control them through ``Options().optimization``.
"""
