# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import numpy
import onnx
import pytest

import backplane
import models
from backplane.__main__ import main


@pytest.fixture
def relu(tmp_path) -> str:
    path = tmp_path / "relu.onnx"
    onnx.save(models.relu(["n", 3]), path)
    return str(path)


def test_list(capsys) -> None:
    assert main(["list"]) == 0
    assert "cpu" in capsys.readouterr().out
    assert main(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["loader"]["abi"] == backplane.abi_version()


def test_info(relu: str, capsys) -> None:
    assert main(["info", relu]) == 0
    assert "x: float32[n,3]" in capsys.readouterr().out
    assert main(["info", relu, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["operators"] == {"Relu": 1}


def test_explain(relu: str, capsys) -> None:
    assert main(["explain", relu, "--device", "cpu", "--pin", "op=Relu=cpu"]) == 0
    assert "Relu" in capsys.readouterr().out
    assert main(["explain", relu, "--device", "null"]) == 1  # the null backend supports no symbolic dimension


def test_run(relu: str, tmp_path, capsys) -> None:
    numpy.save(tmp_path / "x.npy", numpy.array([[-1, 0, 2]], numpy.float32))
    assert main(["run", relu, "--input", f"x={tmp_path}/x.npy", "--output", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["y"]["first"] == ["0.0", "0.0", "2.0"]
    assert numpy.load(tmp_path / "out" / "y.npy").tolist() == [[0, 0, 2]]
    assert main(["run", relu, "--input", f"{tmp_path}/x.npy"]) == 0
    assert main(["run", relu, "--dim", "n=4"]) == 0
    captured = capsys.readouterr()
    assert "random, seed 1" in captured.err
    assert "y: float32[4, 3]" in captured.out


def test_bench(relu: str, capsys) -> None:
    assert main(["bench", relu, "--runs", "5", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["runs"] == 5
    assert report["min_ms"] <= report["median_ms"] <= report["p90_ms"]


def test_outputs_whose_files_would_have_the_same_name(tmp_path) -> None:
    nodes = [onnx.helper.make_node("Relu", ["x"], ["a/b"]), onnx.helper.make_node("Neg", ["x"], ["a_b"])]
    outputs = [models.value(name, shape=[1]) for name in ("a/b", "a_b")]
    onnx.save(models.model(nodes, [models.value("x", shape=[1])], outputs), tmp_path / "m.onnx")
    numpy.save(tmp_path / "x.npy", numpy.array([3], numpy.float32))
    assert main(["run", f"{tmp_path}/m.onnx", "--input", f"{tmp_path}/x.npy", "--output", str(tmp_path / "out")]) == 0
    assert [numpy.load(file).tolist() for file in sorted((tmp_path / "out").iterdir())] == [[3], [-3]]


def test_names_cannot_control_a_terminal(tmp_path, capsys) -> None:
    proto = models.relu()
    proto.graph.input[0].name = proto.graph.node[0].input[0] = "x\x1b[2J"
    onnx.save(proto, tmp_path / "m.onnx")
    for command in ("info", "run"):
        assert main([command, f"{tmp_path}/m.onnx"]) == 0
        captured = capsys.readouterr()
        assert "\x1b" not in captured.out + captured.err


def test_failures(relu: str, tmp_path, capsys) -> None:
    assert main(["info", "nowhere.onnx", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["status"] == "BP_NOT_FOUND"
    assert main(["run", relu, "--device", "tpu"]) == 1
    assert "tpu" in capsys.readouterr().err
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "bad.npz").write_bytes(b"PK\3\4 and no archive")
    for file in ("empty.npy", "bad.npz"):
        assert main(["run", relu, "--input", f"x={tmp_path}/{file}"]) == 1
        assert f"{file}' is not a .npy or .npz file" in capsys.readouterr().err
    for words in (
        ["nonsense"],
        ["run", relu, "--dim", "n"],
        ["run", relu, "--dim", "m=2"],
        ["bench", relu, "--runs", "0"],
        ["explain", relu, "--pin", "x"],
    ):
        with pytest.raises(SystemExit) as status:
            main(words)
        assert status.value.code == 2


def test_version(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert backplane.__version__ in capsys.readouterr().out
