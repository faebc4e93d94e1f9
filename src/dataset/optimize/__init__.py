"""Rewriting plans so that they cost less and give the same. One rule, one file; RULES lists them; driver.py walks.

Open to read; promises nothing to users, who see the rules as fields of ``Options().optimization``.
"""
