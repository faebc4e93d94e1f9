"""SQL queries: opening a database and running one (query.py), and rows made columns of declared dtypes (values.py).

Nothing here knows what a Dataset is; source.py does.
"""
