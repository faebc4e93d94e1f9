"""All tests. That this file is here puts the folder on the import path: libraries, strategies and chains are in it."""
