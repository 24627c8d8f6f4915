"""DICE of an accuracy log by the steps and with the options of the reference's accuracy_kits.py.

    dice.py --log_file LOG --preprocessed_data_dir DIR --postprocessed_data_dir OUT

With REGATTA_INFERENCE set to a checkout of mlcommons/inference, its accuracy_kits.py is run instead.
"""

import argparse
import json
import os
import pathlib
import pickle
import runpy
import sys

import nibabel
import numpy as np


def score(truth, found):
    one_hot = [np.eye(3)[volume.reshape(-1)][:, 1:] for volume in (truth, found)]
    common = (one_hot[0] * one_hot[1]).sum(0)
    return (2.0 * common + 1e-6) / (one_hot[0].sum(0) + one_hot[1].sum(0) + 1e-6)


def main():
    parser = argparse.ArgumentParser()
    for option in ("--log_file", "--preprocessed_data_dir", "--postprocessed_data_dir"):
        parser.add_argument(option, type=pathlib.Path, required=True)
    options = parser.parse_args()
    described = pickle.loads((options.preprocessed_data_dir / "preprocessed_files.pkl").read_bytes())
    entries = json.loads(options.log_file.read_text())
    assert len(entries) == len(described["file_list"]), "another number of responses than of samples"
    scores = []
    for entry in sorted(entries, key=lambda entry: entry["qsl_idx"]):
        case = described["file_list"][entry["qsl_idx"]]
        shape = described["cases"][case]["image_shape"]
        found = np.frombuffer(bytes.fromhex(entry["data"]), np.uint8).reshape(shape)[0]
        path = options.preprocessed_data_dir / "nifti" / case / "segmentation.nii.gz"
        truth = nibabel.load(path).get_fdata().astype(np.uint8)
        assert truth.shape == found.shape, (truth.shape, found.shape)
        scores.append(score(truth, found))
    kidney, tumor = np.mean(scores, 0)
    mean = np.mean([np.mean(one) for one in scores])
    print(f"Accuracy: mean = {mean:.5f}, kidney = {kidney:.4f}, tumor = {tumor:.4f}")
    print("Done!")


checkout = os.environ.get("REGATTA_INFERENCE")
if checkout:
    script = pathlib.Path(checkout) / "vision/medical_imaging/3d-unet-kits19/accuracy_kits.py"
    runpy.run_path(str(script), run_name="__main__")
else:
    main()
