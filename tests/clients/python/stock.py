# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
"""stock.py STEP_FOLDER BASE: opens a step with the safetensors package alone, through the index of
each group as any Hugging Face reader does, and compares every value and the metadata."""
import json
import sys
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

import job

METADATA = {"format": "pt", "k": "v"}


def through_index(folder, group):
    weight_map = json.loads((folder / f"{group}.safetensors.index.json").read_text())["weight_map"]
    files = {name: load_file(folder / name) for name in set(weight_map.values())}
    for name in files:
        with safe_open(folder / name, framework="numpy") as stored:
            assert stored.metadata() == METADATA, stored.metadata()
    assert sorted(weight_map) == sorted(name for file in files.values() for name in file)
    return {name: files[file][name] for name, file in weight_map.items()}


def main(step_folder, base):
    folder = Path(step_folder)
    for group, wanted in job.whole(int(base)).items():
        found = through_index(folder, group)
        assert sorted(found) == sorted(wanted)
        for name, value in wanted.items():
            assert found[name].dtype == value.dtype, (name, found[name].dtype)
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert (folder / "config.json").read_bytes() == job.side_file(int(base))


main(*sys.argv[1:])
