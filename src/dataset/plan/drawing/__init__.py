"""Drawings of plans. graph_layout.py positions boxes and lines, svg.py draws them, page.py adds foldable lists below.

dot.py produces source for Graphviz. All are pure functions of a plan and of the rules that created its nodes.
"""
