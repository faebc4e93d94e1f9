"""Tests that passwords, tokens and signatures in URLs do not appear in errors, plans, logs, states or files."""

import base64
import json
import logging
import pickle
import traceback
from functools import partial

import pytest

from dataset import Dataset, TextLineDataset, TFRecordDataset, checkpoint
from dataset.errors import BrokenConnectionError, DataLossError
from dataset.redaction import hidden_errors, redacted, redacted_error, redacted_text, secrets_of
from support.states import rest_of, state_after
from support.tfrecord_files import frames

PASSWORD, SIGNATURE, TOKEN = "pa55-w0rd", "5ign%2Bature", "t0k3n-value"
SECRETS = [PASSWORD, SIGNATURE, "5ign+ature", TOKEN, base64.b64encode(f"someuser:{PASSWORD}".encode()).decode()]


def put(web, name, content=b"", **about):
    """Store a file; return a URL that only someone who knows the secrets can ask for."""
    path = web.put(f"{name}?sig={SIGNATURE}&token={TOKEN}&id=7", content, **about)
    return path.replace("http://", f"http://someuser:{PASSWORD}@")


def assert_shows_none(text):
    assert not [secret for secret in SECRETS if secret in text], text


def everything_of(error):
    """Return what a traceback and a debugger show of an exception and its causes."""
    found = "".join(traceback.format_exception(error))
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            found += f"{one!r} {one.args!r} {vars(one)!r} {getattr(one, 'filename', '')!r}"
            waiting += [one.__cause__, one.__context__]
    return found


def assert_fails_without_secrets(function, kind=OSError):
    with pytest.raises(kind, match=r"\*\*\*@") as found:
        function()
    assert_shows_none(everything_of(found.value))
    return found.value


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("https://u:p@h/a?sig=1", "https://***@h/a?sig=***"),
        ("https://token@h:80/a#frag", "https://***@h:80/a#***"),
        ("https://h/a b?page=2&x=1;y=2&bare", "https://h/a b?page=2&x=***;y=***&***"),
        ("https://u:p::q@h/a", "https://***@h/a"),
        ("simplecache::https://u:p@h/a", "simplecache::https://***@h/a"),
        ("zip://x::https://h/a.zip?k=v", "zip://x::https://h/a.zip?k=***"),
        ("s3://bucket/a@b#c", "s3://bucket/a@b#c"),
        ("s3://bucket/part-?.csv", "s3://bucket/part-?.csv"),
        ("s3://key:secret@bucket/a?versionId=7", "s3://***@bucket/a?versionId=7"),
        ("/data/token=5/a?b=c", "/data/token=5/a?b=c"),
        ("token=5/a", "token=5/a"),
    ],
)
def test_paths(path, shown):
    assert redacted(path) == shown
    assert redacted(shown) == shown
    assert not [secret for secret in secrets_of(path) if secret in shown]


def test_messages():
    text = "GET https://h/a?sig=abc failed, see '/b?access_token=def&x=1' (AWSAccessKeyId=ghi, X-Amz-Signature=jkl)"
    assert redacted_text(text) == (
        "GET https://h/a?sig=*** failed, see '/b?access_token=***&x=1' (AWSAccessKeyId=ghi, X-Amz-Signature=***)"
    )


def test_exceptions_of_other_libraries():
    path = f"https://u:{PASSWORD}@h/a?sig={SIGNATURE}"
    error = ValueError("decoded 5ign+ature", 3)
    error.__cause__ = error.__context__ = KeyError(path)
    error.add_note(path)
    error.url = path
    redacted_error(error, path)
    assert_shows_none(everything_of(error))
    assert error.args[1] == 3
    assert isinstance(error.__cause__, OSError)
    assert "KeyError" in str(error.__cause__)
    plain = ValueError("nothing")
    assert hidden_errors(plain, secrets_of(path)) is plain


@pytest.mark.parametrize("status", [401, 403, 404, 410, 400, 500, 503])
@pytest.mark.parametrize("reads", [None, 2])
def test_answers_that_are_errors(web, status, reads, caplog):
    with iter(TextLineDataset(put(web, "a", faults=[status] * 10), num_parallel_reads=reads)) as iterator:
        error = assert_fails_without_secrets(lambda: next(iterator))
        state = iterator.state_dict()
    assert f"{web.url[7:]}/a?sig=***" in str(error)
    assert_shows_none(caplog.text)
    assert_shows_none(str(checkpoint.to_json(state)))
    assert isinstance(error, BrokenConnectionError) == (status in {500, 503})


@pytest.mark.parametrize("make", [TextLineDataset, partial(TFRecordDataset, index=True), Dataset.list_files])
def test_servers_that_are_not_there(make):
    path = f"http://someuser:{PASSWORD}@127.0.0.1:9/a?sig={SIGNATURE}"
    assert_fails_without_secrets(lambda: list(make(path)))


@pytest.mark.parametrize("path", ["nosuchscheme://u:{}@h/a", "zip://a::http://u:{}@h/a?sig={}"])
def test_unknown_schemes_and_chains(path, monkeypatch):
    monkeypatch.delenv("DATASET_ALLOW_PROTOCOLS")
    iterator = iter(TextLineDataset(path.format(PASSWORD, SIGNATURE)))
    assert_fails_without_secrets(lambda: next(iterator), ValueError)


PIPELINES = {
    "one after the other": TextLineDataset,
    "side by side": partial(TextLineDataset, num_parallel_reads=2),
    "references": lambda paths: TextLineDataset(paths).shuffle(5, seed=1),
    "references through functions": lambda paths: (
        Dataset.from_tensor_slices(paths).interleave(TextLineDataset, cycle_length=2).shuffle(5, seed=1)
    ),
    "ahead": lambda paths: TextLineDataset(paths).map(bytes.upper, num_parallel_calls=2).batch(2).prefetch(2),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_states_plans_and_files(web, name, tmp_path):
    paths = [put(web, name, b"".join(b"%s%d\n" % (name.encode(), i) for i in range(4))) for name in "ab"]
    make = partial(PIPELINES[name], paths)
    whole = list(map(str, make()))
    for count in range(len(whole)):
        dataset = make()
        with iter(dataset) as iterator:
            for _ in range(count):
                next(iterator)
            state = iterator.state_dict()
            checkpoint.save(tmp_path / "s", iterator)
            assert_shows_none(str(iterator.stats()))
        assert_shows_none(json.dumps(checkpoint.to_json(state)) + pickle.dumps(state).decode("latin-1"))
        assert_shows_none((tmp_path / "s").read_bytes().decode("latin-1"))
        assert_shows_none(checkpoint.describe(state) + checkpoint.describe(tmp_path / "s"))
        with iter(make()) as resumed:
            checkpoint.restore(tmp_path / "s", resumed)
            assert list(map(str, resumed)) == whole[count:]
    assert_shows_none(f"{dataset!r} {dataset.explain()}")


@pytest.mark.parametrize("make", [TextLineDataset, lambda path: TextLineDataset(path).shuffle(2, seed=1)])
def test_a_signature_that_was_renewed_is_the_same_file(make, web):
    old, new = (web.put(f"a?sig={version}-one", b"a0\na1\na2\n") for version in ("old", "new"))
    assert rest_of(make(new), state_after(make(old), 1)) == list(make(old))[1:]


def test_damaged_records_and_their_log(web, caplog):
    caplog.set_level(logging.DEBUG)
    path = put(web, "a", b"\0" * 40)
    error = assert_fails_without_secrets(lambda: list(TFRecordDataset(path)), DataLossError)
    assert "***" in error.path
    assert list(TFRecordDataset(path, on_error="skip")) == []
    assert_shows_none(caplog.text)


def test_indexes(web):
    path = put(web, "a", frames([b"1", b"2", b"3"]))
    web.put(f"{next(iter(web.files))[1:]}.index", b"another kind of file")
    with pytest.warns(UserWarning, match=r"sig=\*\*\*") as warned:
        dataset = TFRecordDataset(path, index=True)
    assert_shows_none(str([str(warning.message) for warning in warned]))
    with iter(dataset) as iterator:
        assert next(iterator) == b"1"
        assert_shows_none(json.dumps(checkpoint.to_json(iterator.state_dict())))
    assert_shows_none(f"{dataset!r} {dataset.explain()}")
