"""Creates and removes the disks. Records each item at its creation; removes only recorded items."""

import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The images themselves, without loop devices: the kernel mounts no file system on them.
RAW = "none"
# No journal and no lazy initialization, so that each request of a program is one request to the
# disk, and the disk gets no others.
FILE_SYSTEMS = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-N", "4096", "-O", "^has_journal,^resize_inode"]
    + ["-E", "nodiscard,lazy_itable_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
}
MOUNT_OPTIONS = {"ext4": "noatime,lazytime,nobarrier,nodiscard", "xfs": "noatime,lazytime"}
# Maximum size of a FUSE request; loop devices cut requests there at the latest.
TRANSFER_KIB = 1024
# Time limit for a process to start or end.
SECONDS_MAX = 10


class Problem(Exception):
    """Disks cannot be created, used or removed; the message names the cause and the remedy."""


@dataclass(frozen=True)
class Speed:
    """The speed of a disk: a request takes T = startup + bytes / rate."""

    random_us: float
    sequential_us: float
    mib_per_s: float

    @staticmethod
    def parse(text):
        """Parses a text such as 3000:1000:12."""
        number = r"\d+(?:\.\d+)?"
        if not re.fullmatch(rf"{number}:{number}:{number}", text):
            raise ValueError(f"'{text}' is not RANDOM_US:SEQUENTIAL_US:MIB_PER_S")
        return Speed(*map(float, text.split(":")))

    def __str__(self):
        return f"{self.random_us:g}:{self.sequential_us:g}:{self.mib_per_s:g}"


class Farm:
    """The disks of a directory."""

    def __init__(self, directory):
        self.directory = Path(directory).resolve()
        self.notes = self.directory / "made.json"
        self.fuse = self.directory / "fuse"

    def mount_point(self, name):
        """The mount point of a disk's file system."""
        return self.directory / "mnt" / name

    def image(self, name):
        """The disk itself, as a file; its reads and writes are throttled."""
        return self.fuse / name

    def is_up(self):
        """Whether the disks serve requests. If their server was killed, every access to its mount
        fails."""
        mounted = self.notes.exists() and mounted_from(self.fuse) == "stripewise-throttled"
        return mounted and os.path.exists(self.fuse / "delay")

    # --- up

    def up(self, throttled_disk, disks, images, size_mib, file_system):
        """Creates `disks`, (name, speed) each. On failure, removes everything created so far."""
        if self.notes.exists():
            raise Problem(f"{self.notes} says that there are disks already; remedy: `down` first")
        check_possible(throttled_disk, file_system)
        images = Path(images or self.directory / "images").resolve()
        if not images.parent.is_dir() and images.parent != self.directory:
            raise Problem(f"{images.parent} is no directory; create it, or give another --images")
        self.directory.mkdir(parents=True, exist_ok=True)
        self.made = {"images": [], "image_dir": str(images), "loops": {}, "file_system": file_system}
        try:
            self._serve(throttled_disk, disks, images, size_mib)
            for name, speed in disks if file_system != RAW else ():
                self._attach(name, rotational=speed.random_us > speed.sequential_us)
            self.delay(True)
        except BaseException:
            self.down()
            raise

    def _note(self):
        temporary = self.notes.with_suffix(".new")
        temporary.write_text(json.dumps(self.made, indent=1) + "\n")
        temporary.rename(self.notes)

    def _serve(self, throttled_disk, disks, images, size_mib):
        images.mkdir(parents=True, exist_ok=True)
        words = []
        for name, speed in disks:
            image = images / f"{name}.img"
            if image.exists():
                raise Problem(f"{image} exists and was not made here; remove it, or give another --images")
            self.made["images"].append(str(image))
            self._note()
            with open(image, "xb") as file:
                file.truncate(size_mib << 20)
            words.append(f"{name}={image}:{speed}")
        self.fuse.mkdir(exist_ok=True)
        with open(self.directory / "disk.log", "wb") as log:
            process = subprocess.Popen([throttled_disk, self.fuse, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True)
        if not wait_for(lambda: mounted_from(self.fuse) or process.poll() is not None) or process.poll() is not None:
            process.kill()
            said = (self.directory / "disk.log").read_text().strip()
            raise Problem(f"throttled-disk did not come up: {said or 'it says nothing'}")

    def _attach(self, name, rotational):
        image, file_system = self.fuse / name, self.made["file_system"]
        device = run("losetup", "--find", "--show", "--direct-io=on", image).strip()
        self.made["loops"][name] = device
        self._note()
        queue = Path("/sys/block") / Path(device).name / "queue"
        settings = {"scheduler": "none", "read_ahead_kb": 0, "max_sectors_kb": TRANSFER_KIB, "rotational": int(rotational)}
        for setting, value in settings.items():
            (queue / setting).write_text(f"{value}\n")
        run(*FILE_SYSTEMS[file_system], device)
        self.mount_point(name).mkdir(parents=True, exist_ok=True)
        run("mount", "-t", file_system, "-o", MOUNT_OPTIONS[file_system], device, self.mount_point(name))

    # --- in use

    def delay(self, on):
        """Switches the throttling, which is off while files are prepared."""
        (self.fuse / "delay").write_text("1\n" if on else "0\n")

    def statistics(self):
        """The counters of each disk, by name."""
        lines = (self.fuse / "statistics").read_text().splitlines()
        return {counts["disk"]: counts for counts in map(json.loads, lines)}

    # --- down

    def down(self):
        """Removes every recorded item that still matches its record."""
        if not self.notes.exists():
            return
        self.made = json.loads(self.notes.read_text())
        if self.is_up():
            self.delay(False)
        for name, device in self.made["loops"].items():
            if mounted_from(self.mount_point(name)) == device:
                run("umount", self.mount_point(name))
            if backing_file(device) == str(self.fuse / name):
                run("losetup", "--detach", device)
                wait_for(lambda device=device: backing_file(device) is None)
        if mounted_from(self.fuse) == "stripewise-throttled":
            wait_for(lambda: not attempt("umount", self.fuse))
            if mounted_from(self.fuse):
                raise Problem(f"{self.fuse} is in use; end what uses it, then `down` again")
        for image in self.made["images"]:
            Path(image).unlink(missing_ok=True)
        self._remove_directories()

    def _remove_directories(self):
        """Removes empty directories, such as former mount points."""
        for name in self.made["loops"]:
            remove_empty(self.mount_point(name))
        for directory in (self.directory / "mnt", self.fuse, Path(self.made["image_dir"])):
            remove_empty(directory)
        (self.directory / "disk.log").unlink(missing_ok=True)
        self.notes.unlink()
        remove_empty(self.directory)


def check_possible(throttled_disk, file_system):
    """Raises a Problem that names a missing right, program or device."""
    if os.geteuid() != 0:
        raise Problem("throttled disks need root (mount, losetup); remedy: sudo")
    if not Path(throttled_disk).exists():
        raise Problem(f"{throttled_disk} is not there; remedy: make throttled-disk")
    loops = file_system != RAW
    for device in ("/dev/fuse", "/dev/loop-control") if loops else ("/dev/fuse",):
        if not os.path.exists(device):
            raise Problem(f"{device} is not there: this kernel or container has no FUSE or no loop devices")
    for program in ("mount", "losetup", FILE_SYSTEMS[file_system][0]) if loops else ("mount",):
        if not shutil.which(program):
            raise Problem(f"{program} is not there; remedy: install util-linux, e2fsprogs or xfsprogs")


def run(*words):
    """Runs a command and returns its output."""
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Problem(f"`{' '.join(words)}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def attempt(*words):
    """Runs a command and returns its exit status."""
    return subprocess.run([str(word) for word in words], capture_output=True, check=False).returncode


def wait_for(condition):
    """Waits until a condition holds, at most SECONDS_MAX. Returns whether it holds."""
    end_s = time.monotonic() + SECONDS_MAX
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.05)
    return True


def mounted_from(directory):
    """The source of a mount, as the kernel names it; None if nothing is mounted there."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, target = line.split()[:2]
        if target.encode().decode("unicode_escape") == str(directory):
            return source
    return None


def backing_file(device):
    """The file under a loop device; None if it has none."""
    try:
        return (Path("/sys/block") / Path(device).name / "loop" / "backing_file").read_text().strip()
    except FileNotFoundError:
        return None


def remove_empty(directory):
    """Removes a directory if it exists and is empty."""
    try:
        directory.rmdir()
    except OSError:
        pass
