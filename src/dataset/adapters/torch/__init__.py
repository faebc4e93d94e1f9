"""PyTorch adapters: a Dataset as a torch dataset of tensors (``to_torch``), and the reverse (``from_torch``).

``to_tensors.py`` converts values to tensors, and ``device.py`` copies them to a device. ``iterable.py`` and
``map_style.py`` implement the two kinds of torch dataset. ``passes.py`` makes the workers of a DataLoader agree on the
epoch, and ``pickling.py`` sends a pipeline to them. ``from_torch.py`` reads torch datasets.
"""
