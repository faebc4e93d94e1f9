"""What processes that a test has started print."""

PATIENCE_SECONDS = 100  # for what must come; nothing waits that long


def outputs(processes):
    """The text of each, all of which must end well. None of them is left, whatever happens."""
    try:
        found = [process.communicate(timeout=PATIENCE_SECONDS) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    for process, (_, errors) in zip(processes, found, strict=True):
        assert process.returncode == 0, errors
    return [output for output, _ in found]
