"""SequenceExamples of given values."""

from dataset import io


def sequence_example(context=(), /, **lists):
    """Return the bytes of a SequenceExample: values by name in the context, and a list of steps by name.

    A step is a list of values; None has no kind.
    """
    message = io.SequenceExample()
    for key, values in dict(context).items():
        _fill(message.context.feature[key], values)
    for key, steps in lists.items():
        target = message.feature_lists.feature_list[key]
        for values in steps:
            _fill(target.feature.add(), values)
    return message.SerializeToString(deterministic=True)


def _fill(feature, values):
    if values is None:
        return
    kind = {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type([*values, 0][0])]
    getattr(feature, kind).value.extend(values)
    getattr(feature, kind).SetInParent()
