"""Made-up cases in the published form of KiTS19, with awkward spacings, orientations, sizes, types and
versions of NIfTI, and gzip files that continue behind their end.

    make_kits.py DIR CASE...    writes DIR/CASE/imaging.nii.gz and segmentation.nii.gz
    make_kits.py DIR --side N CASE...    the same, with volumes that become about N to 1.5 N voxels along each side
"""

import gzip
import pathlib
import sys

import nibabel
import numpy as np

TYPES = ["<f8", "<i2", "<f4", ">i2", "<i4", "|u1", "<u2", ">f8"]


def affine(rng, spacing, is_quaternion):
    """Returns a map with axes in any direction, and in any order unless it is told by a quaternion, which is not exact then."""
    rows = np.zeros((4, 4))
    for axis, target in enumerate(range(3) if is_quaternion else rng.permutation(3)):
        rows[target, axis] = spacing[axis] * rng.choice([-1, 1])
    rows[:3, 3] = rng.uniform(-300, 300, 3)
    rows[3, 3] = 1
    return rows


def case(rng, number, side):
    spacing = rng.choice([0.5, 0.78125, 0.919921875, 1.0, 1.2, 1.25, 1.6, 2.5, 3.0, 5.0], 3) * rng.choice([1, 1.0009765], 3)
    least, most = (0.9 * side, 1.5 * side) if side else (3, 215)
    size = [max(1, int(one)) for one in rng.uniform(least, most, 3) * [1.6, 1.2, 1.2] / spacing]
    if number == 1 and not side:
        spacing, size = np.array([1.6, 1.2, 1.2]), [130, 161, 128]
    if number == 2 and not side:
        size[0], spacing[0] = 1, 5.0
    places = np.meshgrid(*(np.linspace(-1, 1, side) if side > 1 else np.zeros(1) for side in size), indexing="ij")
    values = rng.normal(-60, 90, size)
    classes = np.zeros(size, np.uint8)
    for name, centre, radius in ((1, -0.4, 0.5), (1, 0.4, 0.5), (2, 0.5, 0.25)):
        inside = sum((place - centre * (axis > 0)) ** 2 for axis, place in enumerate(places)) < radius**2
        values[inside] += 150 * name
        classes[inside] = name
    return values, classes, spacing


def main():
    arguments = sys.argv[1:]
    root, names, side = pathlib.Path(arguments[0]), arguments[1:], None
    if names[0] == "--side":
        side, names = int(names[1]), names[2:]
    rng = np.random.default_rng(20261)
    for number, name in enumerate(names):
        values, classes, spacing = case(rng, number, side)
        kind = TYPES[number % len(TYPES)]
        is_quaternion = number % 3 == 1
        rows = affine(rng, spacing, is_quaternion)
        version = nibabel.Nifti2Image if number % len(TYPES) in (3, 4, 5) else nibabel.Nifti1Image
        header = version.header_class(endianness=">" if kind[0] == ">" else "<")
        stored = values
        if kind == "|u1":
            stored = np.clip((values + 400) / 4, 0, 255)
        if kind == "<u2":
            stored = np.clip(values + 1000, 0, 65535)
        image = version(stored.astype(kind), rows, header)
        image.header.set_data_dtype(kind)
        if kind == "|u1":
            image.header.set_slope_inter(4, -400)
        if kind == "<u2":
            image.header.set_slope_inter(1, -1000)
        if is_quaternion:
            image.set_qform(rows, 1)
            image.set_sform(None, 0)
        directory = root / name
        directory.mkdir(parents=True, exist_ok=True)
        write(image, stored.astype(kind), directory / "imaging.nii.gz")
        with open(directory / "imaging.nii.gz", "ab") as file:
            file.write({6: bytes(1000), 7: b"no gzip"}.get(number % len(TYPES), b""))
        labels = version(classes.astype("<f8" if number % 4 == 3 else "|u1"), rows)
        nibabel.save(labels, directory / "segmentation.nii.gz")


def write(image, stored, path):
    """Writes header and voxels as they are: nibabel's own writer would choose another scaling."""
    header = image.header.copy()
    header["magic"] = header.single_magic
    header["vox_offset"] = header.single_vox_offset
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(header.binaryblock + b"\0\0\0\0" + stored.tobytes(order="F"))


main()
