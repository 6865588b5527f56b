"""Every format that is known, in the order in which files are read."""

from __future__ import annotations

from typing import Final

from iolab.importers.aiperf import AiperfImporter
from iolab.importers.diskspd import DiskspdImporter
from iolab.importers.elbencho import ElbenchoImporter
from iolab.importers.files import Importer
from iolab.importers.fio import FioImporter
from iolab.importers.fio_logs import OrphanFioLogSkipper
from iolab.importers.gpu_storage import GdsioImporter, NixlbenchImporter
from iolab.importers.io500 import Io500Importer
from iolab.importers.ior import IorImporter
from iolab.importers.keyvalue import DbBenchImporter, YcsbImporter
from iolab.importers.mdtest import MdtestImporter
from iolab.importers.pod_benchmarks import DbenchImporter, KbenchImporter, KubestrImporter
from iolab.importers.rados_bench import RadosBenchImporter
from iolab.importers.unread_formats import UnsupportedFormatImporter
from iolab.importers.vdbench import VdbenchImporter
from iolab.importers.vm_fleets import HciBenchImporter, VmFleetImporter
from iolab.importers.warp import WarpLogImporter, WarpResultImporter

IMPORTERS: Final[tuple[Importer, ...]] = (
    Io500Importer(),
    KubestrImporter(),
    DbenchImporter(),
    KbenchImporter(),
    FioImporter(),
    IorImporter(),
    MdtestImporter(),
    YcsbImporter(),
    DbBenchImporter(),
    ElbenchoImporter(),
    WarpLogImporter(),
    WarpResultImporter(),
    VdbenchImporter(),
    DiskspdImporter(),
    GdsioImporter(),
    NixlbenchImporter(),
    RadosBenchImporter(),
    HciBenchImporter(),
    VmFleetImporter(),
    AiperfImporter(),
    OrphanFioLogSkipper(),
    UnsupportedFormatImporter(),
)
"""What wraps reports of others comes first: a folder of IO500's, and programs that run fio in pods.
Logs of fio's follow when reports have taken theirs; formats that are not read come last."""
