"""SQL reader: query.py opens a database and runs a query, sql_values.py converts rows to columns of declared dtypes.

Only source.py depends on datasets.
"""
