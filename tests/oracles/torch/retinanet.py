"""Heads and detections of RetinaNet by torchvision, of the weights of small.py. Needs PyTorch and torchvision, such as Debian's python3-torchvision.

    retinanet.py NAME WEIGHTS SAMPLES SAVED

prints them as record.py describes, and saves the model as the reference has published its own; WEIGHTS is an .npz.
"""

import sys

import numpy as np
import torch
from torchvision.models.detection import RetinaNet
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.models.resnet import Bottleneck, ResNet
from torchvision.ops.feature_pyramid_network import LastLevelP6P7
from torchvision.ops.misc import FrozenBatchNorm2d

from record import print_record, samples
from small import BLOCKS, CLASSES, FEATURES, GROUP_WIDTH, GROUPS, SIDES

SIDE = SIDES["retinanet"]


def network(weights):
    body = ResNet(Bottleneck, BLOCKS, groups=GROUPS, width_per_group=GROUP_WIDTH, norm_layer=FrozenBatchNorm2d)
    stages = {f"layer{number}": str(number - 2) for number in [2, 3, 4]}
    backbone = BackboneWithFPN(body, stages, [512, 1024, 2048], FEATURES, extra_blocks=LastLevelP6P7(FEATURES, FEATURES))
    sizes = tuple((size, int(size * 2 ** (1 / 3)), int(size * 2 ** (2 / 3))) for size in [32, 64, 128, 256, 512])
    anchors = AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * len(sizes))
    model = RetinaNet(backbone, CLASSES, anchor_generator=anchors, min_size=SIDE, max_size=SIDE, detections_per_img=300)
    # torchvision renames the tensors of older versions, such as the published ones.
    model.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()})
    return model.eval()


def detections(index, found):
    for (left, top, right, bottom), score, label in zip(found["boxes"] / SIDE, found["scores"], found["labels"]):
        yield [index, *map(float, (top, left, bottom, right, score)), int(label)]


def main():
    _, weights, images, saved = sys.argv[1:]
    model, images = network(np.load(weights)), torch.from_numpy(samples(images, SIDE))
    torch.save({"model": model.state_dict()}, saved)
    with torch.no_grad():
        heads = model.head(list(model.backbone(model.transform(list(images))[0].tensors).values()))
        found = model(list(images))
    heads = {name: values.numpy() for name, values in heads.items()}
    print_record(heads, [list(detections(index, one)) for index, one in enumerate(found)])


main()
