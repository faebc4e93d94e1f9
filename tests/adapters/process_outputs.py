"""Outputs of processes that a test has started."""

PATIENCE_SECONDS = 250  # time limit; the processes normally take much less


def outputs(processes):
    """Return the output of each process; all must exit with status 0. Kill the remaining ones in any case."""
    try:
        found = [process.communicate(timeout=PATIENCE_SECONDS) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    for process, (_, errors) in zip(processes, found, strict=True):
        assert process.returncode == 0, errors
    return [output for output, _ in found]
