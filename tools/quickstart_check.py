# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
"""The checks of tools/quickstart: each reads what a job or a command printed and says what it saw.

quickstart_check.py NAME ARGS...: exit 0 if the check held.
"""
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

TENSOR = "blocks.0.attn.qkv.weight"


def need(condition, what):
    if not condition:
        sys.exit(what)


def losses(log):
    """{step: loss}, exactly as computed: c_gpt prints them as hexadecimal floats too."""
    found = re.findall(r"^step (\d+) loss \S+ bits (\S+)$", Path(log).read_text(), re.M)
    return {int(step): float.fromhex(bits) for step, bits in found}


def samples(log, first, last):
    found = re.findall(r'^sample step (\d+) (rank \d+: ".*")$', Path(log).read_text(), re.M)
    return {(int(step), text) for step, text in found if int(first) <= int(step) <= int(last)}


def span(log, first, last):
    """The losses of steps first..last, which must be all that the log has."""
    found = losses(log)
    wanted = list(range(int(first), int(last) + 1))
    need(sorted(found) == wanted, f"the log has steps {sorted(found)[:1]}..{sorted(found)[-1:]}")
    return found


def learned(log, steps):
    found = span(log, 1, steps)
    first, last = found[1], found[int(steps)]
    print(f"loss {first:.3f} -> {last:.3f}, {last / first:.0%} after {steps} steps")
    need(last <= 0.7 * first, "it did not learn enough")


def same(reference, log, first, last):
    ours, theirs = span(log, first, last), losses(reference)
    for step, loss in ours.items():
        need(loss == theirs[step], f"step {step}: loss {loss!r} instead of {theirs[step]!r}")
    texts = samples(log, first, last)
    strange = texts - samples(reference, first, last)
    need(texts and not strange, f"samples differ: {sorted(strange)[:1]}")
    print(f"{len(ours)} losses and {len(texts)} sample texts are equal")


def worst(reference, log, first, last):
    ours, theirs = span(log, first, last), losses(reference)
    most = max(abs(loss - theirs[step]) for step, loss in ours.items())
    print(f"{len(ours)} losses differ by at most {most:.3g}")
    return most


def close(*args):
    need(worst(*args) <= 1e-3, "that is more than 1e-3")


def differ(*args):
    need(worst(*args) > 1e-3, "that is not more than 1e-3")


def reseeded(log, saved_by, ranks):
    found = re.findall(r"^(rank (\d+): .*reseeded)$", Path(log).read_text(), re.M)
    print(*(line for line, _ in found), sep="\n")
    wanted = set(range(int(saved_by), int(ranks)))
    need({int(rank) for _, rank in found} == wanted, f"expected of ranks {sorted(wanted)}")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def steps_between(every, last):
    return range(int(every), int(last) + 1, int(every))


def shows(what, ckpt, root, every="0", last="0"):
    code, out, err = run(ckpt, what, root)
    lines = out.splitlines()
    print(*lines[:12], *(["..."] if len(lines) > 12 else []), sep="\n")
    need(code == 0, f"exit code {code}: {err}")
    if what == "list":
        wanted = [str(step) for step in steps_between(every, last)]
    else:
        wanted = [TENSOR, "64", "192", "F32", "BF16", "model_bf16", "optimizer", "config.json",
                  "model-00001-of-", "rank"]
    for word in wanted:
        need(word.lower() in out.lower(), f"no word of {word}")


def numbers(value):
    """All numbers anywhere in a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {number for part in value for number in numbers(part)}
    return {value} if isinstance(value, int) else set()


def check_json(ckpt, root, every, last):
    for what in ("list", "show", "verify"):
        code, out, err = run(ckpt, what, root, "--json")
        need(code == 0, f"{what}: exit code {code}: {err}")
        value = json.loads(out)
        need(value.get("schema") == 1, f"{what}: no schema 1")
        print(f"{what}: {', '.join(value)}")
        if what == "list":
            need(set(steps_between(every, last)) <= numbers(value), "list: steps are missing")
        if what == "show":
            need(f'"{TENSOR}"' in out, "show: tensors are missing")


def progress(ckpt, root):
    code, out, err = run(ckpt, "verify", root)
    moves = re.compile(r"\r(?!\n)|\d ?%")
    need(code == 0 and not moves.search(out + err), "progress without a terminal")
    terminal, end = pty.openpty()
    child = subprocess.Popen([ckpt, "verify", root], stdin=end, stdout=end, stderr=end)
    os.close(end)
    seen = b""
    try:
        while data := os.read(terminal, 4096):
            seen += data
    except OSError:  # EIO: the other end is closed
        pass
    need(child.wait() == 0, "it failed on a terminal")
    need(moves.search(seen.decode(errors="replace")), f"none on a terminal: {seen!r}")


def flip(path):
    with open(path, "r+b") as file:
        file.seek(-1000, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def damaged(ckpt, root):
    code, out, err = run(ckpt, "verify", root)
    print((out + err).strip())
    need(code == 1, f"exit code {code}")
    need("model-00001-of-" in out + err, "the file is not named")
    code, out, err = run(ckpt, "verify", root, "--json")
    need(code == 1 and json.loads(out).get("schema") == 1, f"--json: exit code {code}, {out!r}")


def values(log, folder):
    from safetensors import safe_open
    import ml_dtypes  # noqa: F401  makes bfloat16 known to numpy
    import numpy

    printed = re.findall(r"^value (\w+) (\S+) (\d+) (\S+)$", Path(log).read_text(), re.M)
    need(printed, "the trainer printed no values")
    opened, seen = {}, {}
    for group, name, at, shown in printed:
        if group not in opened:
            index = json.loads((Path(folder) / f"{group}.safetensors.index.json").read_text())
            opened[group] = index["weight_map"]
        with safe_open(Path(folder) / opened[group][name], framework="np") as file:
            found = file.get_tensor(name).reshape(-1)[int(at)]
        if group == "model_bf16":
            equal = found.dtype.name == "bfloat16"
            equal = equal and int(found.view(numpy.uint16)) == int(shown, 16)
        else:
            equal = found.dtype == numpy.float32 and float(found) == float.fromhex(shown)
        need(equal, f"{group} {name}[{at}]: {found} instead of {shown}")
        seen.setdefault(group, []).append(name)
    need(set(seen) == {"model", "model_bf16", "optimizer"}, f"groups {sorted(seen)}")
    for group, names in seen.items():
        need(set(names) == set(opened[group]), f"{group}: not all tensors were compared")
        print(f"{group}: {len(names)} values of {len(set(names))} tensors are equal")


def outcomes(log, step):
    """What the ranks printed of the save of `step` that was meant to fail, and of it
    {rank: (status, seconds, field, cause rank, message)}."""
    text = "\n".join(re.findall(rf"^save {step} (.*)$", Path(log).read_text(), re.M))
    print(text)
    pattern = (r"^rank (\d+): gave (-?\d+) after (\S+) s, "
               r'cause: field "(.*?)" of rank (-?\d+): (.*)$')
    found = re.findall(pattern, text, re.M)
    return text, {int(r): (int(s), float(t), f, int(c), m) for r, s, t, f, c, m in found}


def alone(log, ranks):
    text, found = outcomes(log, 20)
    need(set(found) == {0} and found[0][0] == -10, "rank 0 did not get PARTICIPANTS (-10)")
    need(1.5 <= found[0][1] <= 10, f"after {found[0][1]} s, with a deadline of 2 s")
    own = dict(re.findall(r'^rank (\d+): goes on, (phase ".*" step \d+)$', text, re.M))
    told = dict(re.findall(r'^rank 0: of rank (\d+): condition 1, (phase ".*?" step \d+)',
                           text, re.M))
    others = {str(rank) for rank in range(1, int(ranks))}
    need(set(own) == others and own == told, f"the ranks were in {own}, the error says {told}")
    calls = re.findall(r'last call "(ckpt_advise\(step=20\).*)"$', text, re.M)
    need(len(calls) == len(others), "the last call of some rank is not its advise of step 20")


def unharmed(reference, log, last, saved):
    ours, theirs = span(log, 1, last), losses(reference)
    need(all(loss == theirs[step] for step, loss in ours.items()), "losses differ")
    found = re.findall(r"^saved step (\d+)$", Path(log).read_text(), re.M)
    print(f"{len(ours)} losses are those of the reference; saved: {', '.join(found)}")
    need(found == saved.split(), f"expected {saved}")


def tag(log, ranks):
    odd = 2 if int(ranks) > 2 else int(ranks) - 1
    _, found = outcomes(log, 40)
    need(set(found) == set(range(int(ranks))), "not every rank reports")
    for rank, (status, seconds, field, _, message) in found.items():
        need(status == -11, f"rank {rank}: not MISMATCH (-11)")
        need(seconds < 2, f"rank {rank}: after {seconds} s")
        need(field == "tag", f"rank {rank}: field {field!r}")
        need(re.search(rf"\branks? .*\b{odd}\b", message), f"rank {rank}: rank {odd} is not named")
    need(len({outcome[2:] for outcome in found.values()}) == 1, "the ranks were told otherwise")


def only(root, saved):
    found = sorted({path.name for path in Path(root).iterdir()} - {".ckpt", "LATEST"})
    print(*found)
    wanted = [f"step-{int(step):012d}" for step in saved.split()]
    need(found == wanted, f"expected {wanted}")


CHECKS = {"json": check_json} | {
    check.__name__: check
    for check in (learned, same, close, differ, reseeded, shows, progress, flip, damaged, values,
                  alone, unharmed, tag, only)
}

if __name__ == "__main__":
    try:
        CHECKS[sys.argv[1]](*sys.argv[2:])
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")
