#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_onnx.py FOLDER: copies the test data of the installed onnx to FOLDER.

Releases up to 1.22 have the node cases as files. Later ones have only the programs that compute them; here they become files of the same form:
node/CASE/model.onnx and node/CASE/test_data_set_N/input_K.pb, output_K.pb.
"""
import pathlib
import shutil
import sys

import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests


def to_message(value, info):
    """A value of a case, with the name and in the form that its input or output has."""
    if isinstance(value, onnx.TensorProto):
        value.name = info.name
        return value
    kind = info.type.WhichOneof("value")
    convert = {"sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional, "map_type": numpy_helper.from_dict}
    return convert.get(kind, numpy_helper.from_array)(value, info.name)


def write_case(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data_set = folder / f"test_data_set_{number}"
        data_set.mkdir()
        for word, values, infos in [("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)]:
            for index, value in enumerate(values):
                (data_set / f"{word}_{index}.pb").write_bytes(to_message(value, infos[index]).SerializeToString())


def main():
    folder = pathlib.Path(sys.argv[1])
    shutil.copytree(pathlib.Path(onnx.__file__).parent / "backend/test/data", folder)
    if (folder / "node").exists():
        return
    cases = load_model_tests(kind="node")
    for case in cases:
        write_case(case, folder / "node" / case.name)
    print(f"{len(cases)} node cases of onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
