"""Which facts belong to which configuration where one host has several targets."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.study.targets import configuration_facts_by_host, targets_of_study
from tests.study.studies import SMALL, load
from tests.study.test_guard import FACTS, TARGET

TWO = (
    SMALL
    + '[[configuration]]\nid = "old"\npath = "/mnt/old"\n'
    + '[[configuration]]\nid = "new"\npath = "/mnt/new"\n'
)


def test_two_targets_of_one_host_keep_their_own_facts() -> None:
    study = load(TWO, path=None)
    facts = {
        target.key: replace(FACTS, target=replace(TARGET, path=target.path))
        for target in targets_of_study(study)
    }
    for configuration in study.configurations:
        ((host, found),) = configuration_facts_by_host(study, facts, configuration.id).items()
        assert host == "local"
        assert found.target is not None
        assert found.target.path == configuration.path


def test_a_target_that_was_not_reached_has_no_facts_of_another() -> None:
    study = load(TWO, path=None)
    assert configuration_facts_by_host(study, {"local": FACTS}, "new") == {}
