# SPDX-License-Identifier: Apache-2.0
"""The models that are measured, and their goals: the largest ratio of Backplane's time to onnxruntime's."""
import dataclasses


@dataclasses.dataclass
class Row:
    name: str
    folder: str  # in $BACKPLANE_DATA
    goal: float
    int8: bool = False


ROWS = [
    Row("resnet50", "light/resnet50", 0.70),
    Row("vgg19", "light/vgg19", 0.65),
    Row("densenet121", "light/densenet121", 0.70),
    Row("inception_v1", "light/inception_v1", 0.60),
    Row("inception_v2", "light/inception_v2", 0.75),
    Row("squeezenet", "light/squeezenet", 0.75),
    Row("shufflenet", "light/shufflenet", 0.60),
    Row("alexnet", "light/alexnet", 0.75),
    Row("zfnet512", "light/zfnet512", 0.75),
    Row("bert_base", "bench/bert_base", 0.75),
    Row("minilm6", "bench/minilm6", 0.65),
    Row("resnet50_int8", "bench/resnet50_int8", 0.80, int8=True),
    Row("mobilenet_int8", "bench/mobilenet_int8", 0.80, int8=True),
]
MEAN_GOAL = 0.70    # geometric mean of the fp32 rows
MEMORY_GOAL = 0.70  # Backplane's peak memory over onnxruntime's
LOAD_GOAL = 0.80    # ratio of the medians and of the 90th percentiles while another process keeps one core busy
FLOOR_SLACK = 1.15  # a time of at most this multiple of its floor meets the goal regardless of the ratio
