"""Drawings of plans. explain.py formats them as text; svg.py draws a picture, whose boxes graph_layout.py positions.

Both are pure functions of a plan and of the rules that created its nodes.
"""
