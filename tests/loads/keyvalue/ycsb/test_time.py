"""How long a run of YCSB lasts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.loads.keyvalue.cost import (
    CONNECT_S,
    CONNECT_SPREAD_S,
    clients_start_allowance_s,
    ycsb_execution_limit_s,
)
from iolab.loads.keyvalue.workload import ServerKind
from tests.session.stage import study_of


@pytest.mark.parametrize("kind", ServerKind)
def test_several_clients_get_time_to_come_together(kind: ServerKind) -> None:
    assert clients_start_allowance_s(kind, 1) == CONNECT_S[kind]
    assert clients_start_allowance_s(kind, 12) == CONNECT_S[kind] + CONNECT_SPREAD_S


def test_the_load_lasts_in_whole_seconds_and_never_less_than_asked() -> None:
    method = replace(study_of().method, warmup_s=1.5, runtime_s=4.2)
    assert (
        ycsb_execution_limit_s(method, ServerKind.EMBEDDED, 1) == 6 + CONNECT_S[ServerKind.EMBEDDED]
    )
