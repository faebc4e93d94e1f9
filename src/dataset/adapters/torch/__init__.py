"""PyTorch: datasets of tensors out of a Dataset (``to_torch``), and a Dataset out of theirs (``from_torch``).

``tensors.py`` makes tensors of values, ``device.py`` brings them to a device. ``iterable.py`` and ``map_style.py`` are
the two kinds of dataset that torch knows; ``passes.py`` has the workers of a DataLoader agree on the epoch, and
``parcel.py`` sends a pipeline to them. ``from_torch.py`` is the way back.
"""
