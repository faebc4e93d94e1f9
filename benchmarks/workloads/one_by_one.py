"""Numbers -> map(x + 1), one element at a time: what it costs to be asked for one.

Left out: ray.data, WebDataset and mlx-data, which are made for batches, blocks and samples that are dicts. So are the
rows of Hugging Face datasets, but to iterate over single rows is their documented way.
"""
