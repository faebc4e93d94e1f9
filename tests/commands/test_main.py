"""Tests of how commands end: exit statuses, one-line error messages, and closed pipes."""

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dataset.commands.display.progress_bar import ProgressMeter
from dataset.commands.main import main, parser
from dataset.extras import EXTRAS, missing_modules
from dataset.version import __version__

COMMANDS = {
    "info": [],
    "head": [],
    "verify": [],
    "index": [],
    "split": ["--num-shards", "2", "--output", "out-{shard}"],
    "merge": ["--output", "out"],
    "repair": ["--output", "out"],
}


def test_the_version_says_whether_the_native_kernels_are_in_use(capsys, native):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    status = "in use" if native == "kernels" else "not in use: DATASET_NATIVE is 0"
    first, extras = capsys.readouterr().out.splitlines()
    assert first == f"dataset {__version__}; native kernels: {status}"
    assert extras.startswith("extras: ")
    assert all((name in extras) == (not missing_modules(name)) for name in EXTRAS)


@pytest.fixture(params=COMMANDS)
def command(request, tmp_path, monkeypatch):
    """Return the arguments of a command; each command writes to a separate folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield [request.param, *COMMANDS[request.param]]
    assert list(folder.iterdir()) == []


def mistake(run, command, *words):
    """Return the standard error of a command; all commands except verify print nothing else."""
    status, out, err = run(*command, *words)
    assert status == 2
    assert out == "" or command[0] == "verify"
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("{}/no", "error: {}/no: No such file or directory\n"),
        ("{}", "error: {}: Is a directory\n"),
        ("{}/pipe", "this is a pipe"),
        ("-", "write it to a file first"),
        ("", "must not be empty"),
        ("{}/x*", "no file matches"),
        ("{}/a\x1b[31m\nb", "a\\x1b[31m\\nb"),
    ],
)
def test_a_name_that_is_not_that_of_a_file(run, command, tmp_path, name, words):
    os.mkfifo(tmp_path / "pipe")
    assert words.format(tmp_path) in mistake(run, command, name.format(tmp_path))


def test_a_file_that_is_not_a_tfrecord_file(run, command, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"\x1b[31m some text that is long enough")
    if command[0] in {"verify", "repair"}:  # they cannot know whether the file was a TFRecord file
        assert run(*command, path)[0] == 1
    else:
        message = mistake(run, command, path)
        assert "not a TFRecord file" in message
        assert "\x1b" not in message


@pytest.mark.parametrize(("written", "said"), [(None, "gzip"), ("GZIP", "none"), ("GZIP", "zlib"), ("ZLIB", "gzip")])
def test_another_compression_than_the_files(run, write, command, written, said):
    if command[0] == "index":
        return
    option = "--input-compression" if command[0] in {"split", "merge", "repair"} else "--compression"
    message = mistake(run, command, write([b"a"], compression=written), option, said)
    assert f"the compression of this file is {(written or 'none').lower()!r}, not {said!r}" in message


def test_patterns_that_the_shell_left(run, write, tmp_path):
    for name in ("b", "a", "[x]"):
        write([b"1"], name)
    assert [file["path"] for file in run.json("info", tmp_path / "[ab]")["files"]] == [f"{tmp_path}/a", f"{tmp_path}/b"]
    assert run.json("info", tmp_path / "[x]")["total"]["records"] == 1  # a file with exactly this name


def fails_to_parse(words, capsys):
    """Return the standard error of a command line that is wrong."""
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    return capsys.readouterr().err


def test_a_wrong_command_line(capsys):
    for words in ([], ["tfrecord"], ["tfrecord", "dance"], ["tfrecord", "info"]):
        assert fails_to_parse(words, capsys).startswith("usage: python -m dataset")
    options = ["--compression rar", "--max-bytes 0", "--num-shards 0", "--num-shards -1", "--num-shards 1.5"]
    for option in [*map(str.split, options), ["--max-bytes", "5 parsecs"]]:
        assert "must be " in fails_to_parse(["tfrecord", "split", "a", "--output", "b", *option], capsys)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name, capsys):
    with pytest.raises(SystemExit) as end:
        main(["tfrecord", name, "--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert f"  python -m dataset tfrecord {name} " in out
    assert "status: 0" in out
    assert max(map(len, out.splitlines())) <= 90


def python(*words, **options):
    command = [sys.executable, "-W", "error", "-m", "dataset", "tfrecord", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_a_closed_pipe_is_not_an_error(write, digits):
    damaged = write([b"a"])
    damaged.write_bytes(damaged.read_bytes()[:-1])
    for words in (["info", damaged], ["head", "--record", "9", digits, damaged]):
        with python(*words) as process:
            process.stdout.close()
            err = process.stderr.read()
            assert process.wait(timeout=250) == 141
        assert b"Traceback" not in err
    path = write([{"text": "x" * 150}] * 20_000)
    with python("head", "-n", 20_000, path) as process:
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(timeout=250) == 141
    assert err == b""


def test_a_terminal_of_ascii_gets_ascii(write):
    path = write([{"größe": "schön"}])
    for command in ("info", "head"):
        with python(command, path, env={**os.environ, "PYTHONIOENCODING": "ascii"}) as process:
            out, err = process.communicate(timeout=250)
        assert (process.returncode, err) == (0, b"")
        assert b"gr\\u00f6" in out or b"gr\\xf6" in out


# Progress.


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("screen", [Terminal(), io.StringIO()])
def test_the_bar_is_drawn_on_a_terminal_alone_and_gone_at_the_end(screen):
    with ProgressMeter(300, screen) as progress:
        progress.start("a", 100)
        progress.update(100, 5)
        progress.start("b\x1b", 200)
        progress._next = 0
        progress.update(50, 3)
    if not screen.isatty():
        assert screen.getvalue() == ""
        return
    drawn = screen.getvalue().split("\r")
    assert "33%  100 B of 300 B, 5 records  a" in drawn[1]
    assert "50%  150 B of 300 B, 8 records  b\\x1b" in drawn[2]
    assert drawn[-2].strip() == drawn[-1] == ""


# The documentation.


def page():
    return (Path(__file__).parents[2] / "docs" / "commands.md").read_text()


def test_the_parser_accepts_the_commands_of_the_page():
    lines = [line for line in page().splitlines() if line.startswith("    $ ")]
    assert lines
    for words in map(shlex.split, lines):
        assert words[1:4] == ["python", "-m", "dataset"]
        given = parser().parse_args(words[4:])
        assert words[4] == "doctor" or (given.urls if words[4] == "live" else given.files)


def test_the_page_names_every_key_of_the_documents(run, digits, sequences, tmp_path):
    documents = [run.json(command, digits) for command in ("head", "verify", "index")]
    documents += [run.json("info", digits, sequences), run.json("merge", digits, "--output", tmp_path / "merged")]
    named = {key for key in keys(documents) if f"`{key}`" in page() or f'"{key}"' in page()}
    features = {"label", "note", "pixels", "weights", "tokens", "id"}
    kinds = {"min", "max", "text", "raw", "int64", "float", "bytes", "Example", "SequenceExample"}
    assert keys(documents) - named - features - kinds == set()


def keys(document):
    if isinstance(document, dict):
        return set(document).union(*map(keys, document.values()))
    return set().union(*map(keys, document)) if isinstance(document, list) else set()
