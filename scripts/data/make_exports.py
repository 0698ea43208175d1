# SPDX-License-Identifier: Apache-2.0
"""Models as exporters write them, with inputs and the outputs that onnxruntime computes.

    make_exports.py DATA sklearn|torch

sklearn: a trained scikit-learn pipeline through skl2onnx, over columns of numbers (imputed and scaled), of words (one-hot) and a forest.
torch: completes what make_torch.py wrote.
"""
import pathlib
import sys

import numpy
import onnx

import reference


def sklearn_pipeline(folder):
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rng, rows = reference.rng("exports", "sklearn"), 300
    numbers = rng.normal(size=(rows, 4)).astype(numpy.float32)
    words = rng.choice(["red", "green", "blue", "été"], (rows, 2)).astype(object)
    kind = numpy.where(numbers[:, 0] + (words[:, 0] == "red") > 0.5, "warm", numpy.where(numbers[:, 1] > 0, "mild", "cold"))
    numbers[rng.random(numbers.shape) < 0.05] = numpy.nan
    table = numpy.concatenate([numbers.astype(object), words], 1)
    columns = ColumnTransformer([
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1, 2, 3]),
        ("words", OneHotEncoder(handle_unknown="ignore"), [4, 5]),
    ])
    pipeline = make_pipeline(columns, RandomForestClassifier(20, max_depth=6, random_state=1)).fit(table, kind)
    inputs = [("numbers", FloatTensorType([None, 4])), ("words", StringTensorType([None, 2]))]
    model = to_onnx(pipeline, initial_types=inputs, target_opset={"": 18, "ai.onnx.ml": 3}, options={"zipmap": False})
    onnx.save(model, folder / "model.onnx")
    words[3, 0] = "violet"  # a word that the encoder has never seen
    return [numbers[:40], words[:40].astype(str)]


def torch_decoder(folder):
    return [numpy.load(path) for path in sorted(folder.glob("input_*.npy"))]


def main():
    data, name = sys.argv[1:]
    folder = pathlib.Path(data) / "exports" / name
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {"sklearn": sklearn_pipeline, "torch": torch_decoder}[name](folder)
    session = reference.open_model(folder / "model.onnx")
    feeds = {i.name: value.astype(object) if value.dtype.kind == "U" else value for i, value in zip(session.get_inputs(), inputs)}
    results = [numpy.asarray(result) for result in session.run(None, feeds)]
    for stem, values in (("input", inputs), ("output", results)):
        for i, value in enumerate(values):
            numpy.save(folder / f"{stem}_{i}.npy", value.astype(str) if value.dtype == object else value)


if __name__ == "__main__":
    main()
