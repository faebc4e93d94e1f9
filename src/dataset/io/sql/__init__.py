"""SQL reader: query.py opens a database and runs a query, sql_values.py converts columns to declared dtypes.

Only source.py depends on datasets: rows are the values of a generator, see ops/sources/generator.py.
"""
