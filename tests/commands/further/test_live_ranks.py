"""Tests of ``python -m dataset live``: the table of several processes, and which of them are marked."""

import io
import json
import socket
import urllib.error

import pytest

from dataset import Dataset
from dataset.commands.further import live_ranks
from dataset.commands.further.live_ranks import Rank, stragglers
from dataset.commands.main import main


def rank(url, *, waited=0.1, rate=100.0, known=True, running=True):
    return Rank(url, snapshot={} if known else None, waited=waited, rate=rate, is_running=running)


@pytest.mark.parametrize(
    ("ranks", "slow"),
    [
        ([rank("a"), rank("b"), rank("c", waited=0.6), rank("d")], {"c"}),
        ([rank("a"), rank("b"), rank("c", rate=50.0)], {"c"}),
        ([rank("a"), rank("b", rate=50.0)], {"b"}),
        ([rank("a"), rank("b", waited=0.15, rate=97)], set()),
        ([rank("a", waited=0.9)], set()),
        ([rank("a"), rank("b", waited=0.9, rate=1.0, known=False)], set()),
        ([rank(name, waited=0.9) for name in "abcd"], set()),  # all wait: none holds the others up
        ([rank("a"), rank("b", rate=1.0, running=False), rank("c")], set()),
        ([], set()),
    ],
)
def test_stragglers_wait_more_or_get_less_than_the_median(ranks, slow):
    assert stragglers(ranks) == slow


@pytest.fixture
def pages(monkeypatch):
    """Return the addresses of two pages, of an iterator that has ended and one that has not begun."""
    monkeypatch.setenv("RANK", "7")
    with iter(Dataset.range(1234, name="\x1b[31mred")) as first, iter(Dataset.range(5)) as second:
        urls = [first.serve().url, second.serve().url]
        list(first)
        yield urls


@pytest.fixture
def answer(monkeypatch):
    """Let pages answer with these texts, or errors, one after the other; the last one again and again."""

    def answer(*contents):
        left = list(contents)

        def opened(url, timeout):
            content = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(content, Exception):
                raise content
            return io.BytesIO(content)

        monkeypatch.setattr(live_ranks._opener, "open", opened)

    return answer


def test_a_line_for_each_process(pages, capsys):
    assert main(["live", *pages, "--once"]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["rank", "elements", "rate"]
    assert first.split()[:2] == ["7", "1,234"]
    assert second.split()[:2] == ["7", "0"]
    assert "ended" in first
    assert "\x1b" not in first


def test_json_holds_the_whole_snapshots(pages, capsys):
    assert main(["live", pages[0].removeprefix("http://"), "--once", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["ranks"]
    assert found["snapshot"]["stats"]["elements"] == 1234
    assert found["problem"] is None
    assert found["rate"] > 0


def test_a_page_that_cannot_be_read_has_a_line_that_says_why(pages, capsys):
    with socket.create_server(("127.0.0.1", 0)) as nothing:
        free = nothing.getsockname()[1]
    assert main(["live", pages[0], f"localhost:{free}", "--once"]) == 2
    out, err = capsys.readouterr()
    assert "refused" in out.splitlines()[2]
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b"nonsense", b'{"pipeline": 1}', b'{"stats": 3}', b'{"stats": {"seconds": "x"}}',
     b'{"pipeline": 1, "stats": {"seconds": 1, "elements": [], "wait_seconds": 0}}', b"\xff\xfe"],
)  # fmt: skip
def test_an_answer_that_is_not_a_snapshot_is_a_problem_of_its_line(body, answer, capsys):
    answer(body)
    assert main(["live", "http://localhost:1", "--once"]) == 2
    assert "localhost:1" in capsys.readouterr().out


def test_the_rate_is_that_since_the_last_look(answer):
    def snapshot(elements, seconds, pipeline=1):
        stats = {
            "seconds": seconds, "elements": elements, "wait_seconds": seconds / 2, "ended": False, "step_waits": None,
            "buffered_bytes": 0, "bottleneck": None,
        }  # fmt: skip
        return json.dumps({"pipeline": pipeline, "stats": stats, "process": {"rank": None}}).encode()

    gone = urllib.error.URLError("gone")
    answer(snapshot(100, 10.0), snapshot(300, 11.0), snapshot(5, 1.0, pipeline=2), gone, snapshot(9, 3))
    one, rates = Rank("http://localhost:1/snapshot"), []
    for _ in range(5):
        one.update()
        rates.append(one.rate if one.snapshot else one.problem)
    assert rates == [10.0, 200.0, 5.0, "gone", 3.0]
    assert one.waited == 0.5


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x", "http://", "//"])
def test_a_wrong_address_is_refused(url, capsys):
    with pytest.raises(SystemExit) as end:
        main(["live", url])
    assert end.value.code == 2
    assert "must be an address such as http://localhost:8080" in capsys.readouterr().err
