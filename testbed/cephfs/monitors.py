"""Commands to the monitor, among them those that create a testbed's pools and file system."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import rados
from farm import Problem

SECONDS_MAX = 60
FILE_SYSTEM = "bed"


class Monitors:
    """A connection to the monitor of a testbed."""

    def __init__(self, conf):
        self.cluster = rados.Rados(conffile=str(conf), name="client.admin")
        try:
            self.cluster.connect(timeout=10)
        except rados.Error as error:
            raise Problem(f"the monitor of {conf} does not answer: {error}") from None

    def close(self):
        self.cluster.shutdown()

    def ask(self, prefix, **arguments):
        """Sends a command and returns the answer."""
        return json.loads(self._send({"prefix": prefix, **arguments}))

    def together(self, commands):
        """Sends commands in parallel, because the monitor handles many in one round."""
        with ThreadPoolExecutor(32) as threads:
            list(threads.map(self._send, commands))

    def _send(self, command):
        code, out, err = self.cluster.mon_command(json.dumps({"format": "json", **command}), b"", timeout=30)
        if code != 0:
            raise Problem(f"the monitor refuses {command}: {err or code}")
        return out or b"{}"

    def wait_for_osds(self, count):
        self._wait(f"{count} OSDs", lambda: self.ask("osd stat")["num_up_osds"] >= count)

    def wait_for_osd(self, osd, up):
        def is_so():
            return self.ask("osd dump")["osds"][osd]["up"] == int(up)

        self._wait(f"osd.{osd} to be {'up' if up else 'down'}", is_so)

    def wait_for_mds(self):
        self._wait("the MDS", lambda: "up:active" in json.dumps(self.ask("mds stat")))

    def wait_for_clean(self):
        """Waits until every placement group serves requests."""

        def is_so():
            states = self.ask("pg stat")["pg_summary"]["num_pg_by_state"]
            return all(state["name"] == "active+clean" for state in states)

        self._wait("active+clean placement groups", is_so)

    def _wait(self, what, condition):
        end_s = time.monotonic() + SECONDS_MAX
        while not condition():
            if time.monotonic() > end_s:
                raise Problem(f"still waiting for {what} after {SECONDS_MAX} s; the daemons' logs are in log/ of the bed")
            time.sleep(0.1)

    # --- making pools

    def make_pools(self, classes, pgs):
        """Creates a pool per class, a pool per OSD, and the file system over all pools.

        classes: {"hdd": [OSD numbers], "ssd": [...]}
        """
        single = {f"{name}{i}": osd for name, osds in classes.items() for i, osd in enumerate(osds)}
        self._classify(classes)
        self._rules(classes, single)
        pools = {"cephfs_metadata": (4, next(reversed(classes))), **{name: (pgs, name) for name in classes}}
        pools |= {name: (1, name) for name in single}
        self.together(
            {"prefix": "osd pool create", "pool": pool, "pg_num": n, "pgp_num": n, "pool_type": "replicated", "rule": f"on_{rule}"}
            for pool, (n, rule) in pools.items()
        )
        first, *others = classes
        self.ask("fs new", fs_name=FILE_SYSTEM, metadata="cephfs_metadata", data=first, force=True)
        self.together({"prefix": "fs add_data_pool", "fs_name": FILE_SYSTEM, "pool": pool} for pool in [*others, *single])
        self._spread(classes, pgs)

    def _classify(self, classes):
        every = [str(osd) for osds in classes.values() for osd in osds]
        self.ask("osd crush rm-device-class", ids=every)
        for name, osds in classes.items():
            self.ask("osd crush set-device-class", **{"class": name, "ids": [str(osd) for osd in osds]})

    def _rules(self, classes, single):
        """Creates the CRUSH rules. A rule needs a bucket, so each OSD also has its own root."""
        self.together({"prefix": "osd crush add-bucket", "name": f"only_{name}", "type": "root"} for name in single)
        self.together(
            {"prefix": "osd crush add", "id": osd, "weight": 0.01, "args": [f"root=only_{name}"]}
            for name, osd in single.items()
        )
        rule = {"prefix": "osd crush rule create-replicated", "type": "osd"}
        of_classes = [{**rule, "name": f"on_{name}", "root": "default", "class": name} for name in classes]
        self.together(of_classes + [{**rule, "name": f"on_{name}", "root": f"only_{name}"} for name in single])

    def _spread(self, classes, pgs):
        """Places group i of a class's pool on its OSD i mod n: evenly and reproducibly."""
        self.together(
            {"prefix": "osd pg-upmap", "pgid": f"{self.cluster.pool_lookup(name)}.{pg:x}", "id": [osds[pg % len(osds)]]}
            for name, osds in classes.items()
            for pg in range(pgs)
        )
        self.together({"prefix": "osd set", "key": key} for key in ("noscrub", "nodeep-scrub", "noout"))
        self.ask("fs set", fs_name=FILE_SYSTEM, var="max_file_size", val=str(1 << 40))
