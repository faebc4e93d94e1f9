"""Sources without files: ranges, arrays, generators, random numbers, and objects of other libraries."""
