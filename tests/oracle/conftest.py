"""Configuration of the comparisons with tf.data: where its results come from. See recorded.py."""

import json
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import compare
import pytest
import recorded

if recorded.MODE == "record":
    collect_ignore = ["test_recorded.py"]  # its tests are about the record that is being made
    for module in recorded.HERE.glob("test_tf_*.py"):
        recorded.programs(module)  # the digest of what runs, even if the files change meanwhile
passed = defaultdict(dict)  # results to be written, by module and test


@pytest.fixture(autouse=True)
def _results_of_tf_data(request):
    folder = str(request.getfixturevalue("tmp_path")) if "tmp_path" in request.fixturenames else ""
    results = recorded.Results(request.path, request.node.name, folder)
    with recorded.running(results):
        yield
    if recorded.MODE:
        compare.oracle().set_random_seed(None)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    returned = yield
    results = recorded.current()
    results.finish()
    if recorded.MODE == "record":  # with the report, also from another process
        pyfuncitem.user_properties.append(("recorded", json.dumps(results.made)))
    return returned


def pytest_runtest_logreport(report):
    for name, made in report.user_properties:
        if name == "recorded" and report.when == "call" and report.passed:
            path, _, test = report.nodeid.partition("::")
            passed[Path(path).name][test] = json.loads(made)


def pytest_sessionfinish(session):
    if recorded.MODE == "record" and not hasattr(session.config, "workerinput"):
        (distribution, *_) = metadata.packages_distributions()["tensorflow"]
        for module, results in passed.items():
            recorded.record_of(recorded.HERE / module).write(results, metadata.version(distribution))
