"""Records what a version of stripewise writes to disk, for tests/test_former.py.

    python tests/former/record.py BIN_DIR OUT

BIN_DIR has the version's preload library and program. One file of each kind of layout is written in
an empty cluster of directories, and everything that is there after the program has ended becomes an
archive (tar, xz) in base64, so that it can be read as text. A version without `stripewise` in
BIN_DIR gives the files alone, without a trace, a plan's predictions and statistics.
"""

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SIZE = 200_000
CONTENT = "".join(f"{n:07}\n" for n in range(SIZE // 8)).encode()
# The bytes of every file with copies from here on were written last.
NEW_AT, NEW = 70_001, b"written last " * 1000

HDDS = '[{ cycle = "hdd/0-1:4K" }]'
COPY = '[[rule.copy]]\nkind = "{0}"\nname = "{1}"\nlayouts = [[{{ cycle = "{2}" }}]]\n'
CACHE = COPY.format("cache", "1-DH", "ssd/0-1:16K") + COPY.format("cache", "1-DV", "ssd/0-1:64K")
KINDS = {
    "1-DH": ('[{ cycle = "hdd/0-1:4K ssd/0-1:4K" }]', ""),
    "1-DV": ('[{ cycle = "hdd/1:64K" }]', ""),
    "2-D": ('[{ cycle = "hdd/0:4K ssd/1:4K" }]', ""),
    "PA": ('[{ cycle = "hdd/0-1:1K ssd/0-1:3000" }]', ""),
    "PSA": ('[{ end = "64K", cycle = "hdd/0-1:1K ssd/0-1:3K" }, { end = "100001", cycle = "ssd/0-1:2K" }, { cycle = "hdd/0-1:4K" }]', ""),
    "replicas": (HDDS, COPY.format("replica", "wide", "ssd/0-1:16K") + "[rule.overlay]\nlazy_close = true\n"),
    "cache": (HDDS, CACHE + '[rule.overlay]\nmode = "nsca"\ncapacity_per_server = "1M"\nbackground = "1"\n'),
}
WRITE = """
import sys
data, content, at, new = sys.argv[1], open(sys.argv[2], "rb").read(), int(sys.argv[3]), sys.argv[4].encode()
for kind in sys.argv[5:]:
    with open(f"{data}/{kind}", "xb") as file:
        file.write(content)
    with open(f"{data}/{kind}", "r+b") as file:
        file.seek(at)
        file.write(new)
"""


def plan_text(root):
    """One rule for each kind."""
    text = 'version = 1\nscheme = "by hand"\n'
    for kind, (layouts, copies) in KINDS.items():
        text += f'[[rule]]\npattern = "{root}/data/{kind}"\nscheme = "{kind}"\nreason = "recorded"\n'
        text += f"predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [{layouts}]\n{copies}"
    return text + cluster_text(root)


def cluster_text(root):
    """The part of a plan that describes the cluster: two HDDs and two SSDs."""
    text = "[cluster.network]\nestablish_s = 0.0\nper_byte_s = 0.0\n"
    for tier, service in (("hdd", "startup_s = 3e-4, per_byte_s = 8e-9"), ("ssd", "startup_s = 5e-5, per_byte_s = 2e-9")):
        text += f"[cluster.class.{tier}]\n"
        text += "".join(f"{op}.{access} = {{ {service} }}\n" for op in ("read", "write") for access in ("random", "sequential"))
    for tier in ("hdd", "ssd"):
        servers = json.dumps([f"{root}/servers/{tier}{n}" for n in range(2)])
        text += f'[[cluster.tier]]\nname = "{tier}"\nclass = "{tier}"\ndriver = "dirs"\nservers = {servers}\n'
        text += 'capacity_per_server = "1G"\n'
    return text


def write_files(root, bin_dir):
    """Writes a file of each kind below `root`, through the version's preload library."""
    for name in ("data", *(f"servers/{tier}{n}" for tier in ("hdd", "ssd") for n in range(2))):
        (root / name).mkdir(parents=True)
    (root / "plan.toml").write_text(plan_text(root))
    (root / "content").write_bytes(CONTENT)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(bin_dir / "libstripewise_posix.so"),
        "STRIPEWISE_PLAN": str(root / "plan.toml"),
        "STRIPEWISE_STATISTICS": str(root / "statistics.json"),
    }
    subprocess.run(write_command(root / "data", root), env=environment, check=True)


def write_command(data, root):
    """The command that writes files of all kinds to the directory."""
    return ["python3", "-c", WRITE, data, root / "content", str(NEW_AT), NEW.decode(), *KINDS]


def write_records(root, program):
    """Writes a trace, a plan made from it, and its predictions."""
    (root / "cluster.toml").write_text(re.sub(r"(?m)^(\[+)cluster\.", r"\1", cluster_text(root)))
    (root / "plain").mkdir()
    trace, cluster = root / "job.trace", root / "cluster.toml"
    subprocess.run([program, "trace", "-q", "-o", trace, "--", *write_command(root / "plain", root)], check=True)
    with open(root / "predictions.json", "w") as out:
        options = ["--scheme", "psa", "--only", f"{root}/plain/*", "--min-gain", "none", "--json", "--candidates"]
        subprocess.run([program, "plan", trace, "-c", cluster, *options, "-o", root / "planned.toml"], check=True, stdout=out)


def main():
    """Records to the file that the second argument names."""
    bin_dir, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        write_files(root, bin_dir)
        if (bin_dir / "stripewise").exists():
            write_records(root, bin_dir / "stripewise")
        shutil.rmtree(root / "plain", ignore_errors=True)
        (root / "content").unlink()
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:xz", preset=9) as tar:
            (root / "root").write_text(str(root))
            tar.add(root, arcname=".")
        out.write_bytes(base64.encodebytes(archive.getvalue()))


if __name__ == "__main__":
    main()
