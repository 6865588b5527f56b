"""The work directories of a session: taken on first need, laid out once, all left in the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final

from iolab.core.events import FilesystemsCreated, Notice, SessionPhase
from iolab.core.host import HostFacts
from iolab.core.run import PlannedRun
from iolab.core.workload import DataSet, Direction
from iolab.errors import HostError, Interrupted, IolabError
from iolab.hosts.answers import ScratchAnswer, read_answer
from iolab.hosts.barrier import Member, gather_hosts
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError, Message
from iolab.study.targets import (
    Target,
    data_sets_at_target,
    load_host_names_of_point,
    targets_of_study,
)
from iolab.targets.context import TargetContext
from iolab.targets.devices import (
    CreatedFileSystem,
    allocated_image_bytes,
    file_system_image_path,
    make_or_reopen_file_system,
    mount_parent_and_name,
    recreate_file_system,
    release_device,
    take_device,
)
from iolab.targets.layout import (
    lay_out_data_set_where_missing,
    layout_bytes_if_complete,
    require_rotated_folders_visible,
    rotated_workdirs,
)
from iolab.targets.work_directory import (
    CLOSE_LIMIT_S,
    OPEN_LIMIT_S,
    WorkDirectory,
    scratch_folder_name,
)
from iolab.units import format_bytes

OWN_LOCK_PAUSE_S: Final = 1.0
OWN_LOCK_TRIES: Final = 90
"""How long an agent that this session lost may hold on to its folder: its lease, 15 s unless the
study says otherwise, and what it takes to remove the files."""

SLOWEST_REMOVALS_PER_S: Final = 1000.0
"""Of the many files that metadata load leaves when it is stopped, by all threads of an agent."""


async def open_scratch_folder_with_notice(
    context: TargetContext, host: Host, path: str, name: str, *, extra_timeout_s: float = 0.0
) -> str:
    """The folder `name` in `path`, which is the session's alone from now on; its full path.

    What an earlier session left there is removed and told; that may take `extra_timeout_s` longer
    than usual.
    Raises HostError, Interrupted, and AgentRefusalError (busy) while another session holds it.
    """
    opened = await open_scratch_folder(context, host, path, name, extra_timeout_s=extra_timeout_s)
    answer = read_answer(host.name, ScratchAnswer, opened)
    if answer.left_over_bytes:
        size = format_bytes(answer.left_over_bytes)
        context.emit(
            Notice(f"An earlier session had left {size} in {answer.dir} on '{host.name}'.")
        )
    return answer.dir


def split_scratch_folder(folder: str) -> tuple[str, str]:
    """A scratch folder's path and name, written in one way."""
    path, _, name = folder.rpartition("/")
    return path.rstrip("/") or "/", name


async def open_scratch_folder(
    context: TargetContext, host: Host, path: str, name: str, *, extra_timeout_s: float = 0.0
) -> Message:
    """The same without a word; an agent of this very session that is ending there is waited for."""
    owner = context.folder_owner_text
    context.held_folders_by_host.setdefault(host.name, set()).add(
        split_scratch_folder(f"{path}/{name}")
    )
    for _ in range(OWN_LOCK_TRIES):
        try:
            return await host.request(
                "scratch_open",
                deadline_s=OPEN_LIMIT_S + extra_timeout_s,
                path=path,
                name=name,
                owner=owner,
            )
        except AgentRefusalError as refused:
            if refused.code != "busy" or not refused.reason.endswith(f"held by {owner}"):
                raise
        await context.stop.sleep(OWN_LOCK_PAUSE_S)
        if context.stop.is_requested:
            raise Interrupted("The session was stopped.", "Resume it to go on.")
    message = f"{path} on host '{host.name}' is still held by an agent of {owner}."
    raise HostError(message, "See what keeps it alive there, and resume the session.")


class WorkDirectories:
    """Every folder that the session holds, by `Target.key`, and the data sets that lie in them."""

    def __init__(self, context: TargetContext, pending: Iterable[PlannedRun]) -> None:
        self._context = context
        self._targets = targets_of_study(context.study)
        self._needed = {run.point.data_set: run.point for run in reversed(tuple(pending))}
        # What is begun beside each run has files of its own.
        self._needed |= {item.point.data_set: item.point for item in context.plan.neighbours}
        self._open: dict[str, WorkDirectory] = {}
        self._created_file_systems: dict[str, HostFacts] = {}
        self._ready: set[str] = set()
        self._shared: set[tuple[str, ...]] = set()
        most = max((point.job.inodes_per_client for point in context.plan.points), default=0)
        self._removal_s = most / SLOWEST_REMOVALS_PER_S

    async def open_and_lay_out_workdirs(
        self, run: PlannedRun, facts_by_target: Mapping[str, HostFacts]
    ) -> tuple[WorkDirectory, ...]:
        """The run's directories, with all files that the pending runs of its configuration need.

        Raises HostError or EngineError when a folder cannot be had or filled.
        """
        configuration = run.point.configuration
        targets = [
            t for t in self._targets_of_included_hosts() if configuration in t.configurations
        ]
        if configuration not in self._ready:
            await self._open_folders(targets, facts_by_target)
            for data_set in self._context.plan.data_sets:
                if data_set.configuration == configuration and data_set.id in self._needed:
                    await self._lay_out_missing(data_set, targets)
            self._ready.add(configuration)
        there = load_host_names_of_point(self._context.study, run.point)
        workdirs = tuple(self._open[target.key] for target in targets if target.host in there)
        if not workdirs:
            message = f"Every host that makes the load of {run.point.title_text} has failed."
            raise HostError(message, "See why, and resume the session.")
        return (
            await self._rotate_and_check_workdirs(workdirs)
            if self._do_clients_read_each_others_files(run)
            else workdirs
        )

    def workdirs_of_hosts(
        self, configuration_id: str, hosts: Collection[str]
    ) -> tuple[WorkDirectory, ...]:
        """The directories of those hosts, opened by `open_and_lay_out_workdirs` for a run there."""
        targets = [
            t for t in self._targets_of_included_hosts() if configuration_id in t.configurations
        ]
        return tuple(self._open[target.key] for target in targets if target.host in hosts)

    def facts_of_workdir(
        self, workdir: WorkDirectory, facts_by_target: Mapping[str, HostFacts]
    ) -> HostFacts:
        """What is known of a directory's host, also where the session made its file system."""
        return self._created_file_systems.get(
            workdir.target_key, facts_by_target[workdir.target_key]
        )

    def _do_clients_read_each_others_files(self, run: PlannedRun) -> bool:
        """Whether clients of this run read each other's files."""
        reads = Direction.READ in run.point.job.data_directions
        return bool(self._context.study.target.rotate) and reads

    async def _rotate_and_check_workdirs(
        self, workdirs: tuple[WorkDirectory, ...]
    ) -> tuple[WorkDirectory, ...]:
        """The directories handed on; once for every set of them it is seen that they are shared."""
        turned = rotated_workdirs(workdirs, self._context.study.target.rotate)
        folders = tuple(f"{workdir.name} {workdir.dir}" for workdir in turned)
        if folders not in self._shared:
            await require_rotated_folders_visible(workdirs, turned)
            self._shared.add(folders)
        return turned

    async def kept_layout_bytes_by_target(self) -> dict[str, int]:
        """Bytes that an earlier session kept on purpose, by `Target.key`.

        They are those of the plan's files; of an image for a file system what it has of the disk.
        """
        sizes: dict[str, int] = {}

        async def add_kept_layout_bytes(target: Target) -> None:
            if target.serial is not None:
                return
            host = self._context.hosts[target.host]
            if self._context.study.target.make_xfs:
                sizes[target.key] = await allocated_image_bytes(
                    host, file_system_image_path(target)
                )
                return
            folder = f"{target.path.rstrip('/')}/{scratch_folder_name(target.host)}"
            workdir = WorkDirectory(host, folder, None, target.key)
            for data_set in data_sets_at_target(self._context.plan, target):
                size = await layout_bytes_if_complete(workdir, data_set)
                sizes[target.key] = sizes.get(target.key, 0) + size

        for batch in _batches_with_distinct_hosts(self._targets_of_included_hosts()):
            (await gather_hosts(batch, add_kept_layout_bytes)).results_or_raise()
        return sizes

    def forget_host(self, host_name: str) -> None:
        """Hold nothing of a host that was lost: its folders are taken and filled anew on need."""
        for target in self._targets:
            if target.host == host_name:
                self._open.pop(target.key, None)
                self._created_file_systems.pop(target.key, None)
                self._ready.difference_update(target.configurations)

    async def empty_folder(self, workdir: WorkDirectory, parent_path: str) -> None:
        """Remove what lies in a folder, which is taken again; `parent_path` is the folder's parent.

        A file system of the session's own is made anew.
        """
        if workdir.outer_scratch_folder:
            (target,) = [target for target in self._targets if target.key == workdir.target_key]
            await recreate_file_system(workdir, target, self._context.study.target)
            return
        limit_s = CLOSE_LIMIT_S + self._removal_s
        await workdir.host.request("scratch_close", deadline_s=limit_s, dir=workdir.dir, keep=False)
        name = scratch_folder_name(workdir.name)
        await open_scratch_folder(
            self._context, workdir.host, parent_path, name, extra_timeout_s=self._removal_s
        )

    async def lay_out_configuration_again(self, run: PlannedRun) -> None:
        """All files of the run's configuration anew, in folders that are empty."""
        here = run.point.configuration
        targets = [t for t in self._targets_of_included_hosts() if here in t.configurations]
        for data_set in self._context.plan.data_sets:
            if data_set.configuration == here and data_set.id in self._needed:
                await self._lay_out_missing(data_set, targets)

    async def clean_up_and_list_failures(self) -> tuple[str, ...]:
        """Remove every folder, or keep it where the study says so; sentences on what failed.

        A folder that stays is tried once more when its agent ends, and named then.
        """
        keep = self._context.study.target.keep_files
        paths = {target.key: target.path for target in self._targets}
        empty = {target.key for target in self._targets if target.holds_no_load_data}
        living = [workdir for workdir in self._open.values() if not workdir.host.lost_reason]

        async def close_workdir(workdir: WorkDirectory) -> None:
            if workdir.device:
                await release_device(workdir, paths[workdir.target_key])
                return
            taken, folder = (
                self._context.held_folders_by_host.get(workdir.name, set()),
                workdir.scratch_folder,
            )
            limit_s = CLOSE_LIMIT_S + self._removal_s
            try:
                await workdir.host.request(
                    "scratch_close",
                    deadline_s=limit_s,
                    dir=folder,
                    keep=keep and workdir.target_key not in empty,
                )
            except AgentRefusalError as refusal:
                taken.discard(split_scratch_folder(folder))
                if refusal.code == "replaced":
                    raise  # It was moved, and is removed; what stays is in the agent's last answer.
                return
            taken.discard(split_scratch_folder(folder))

        faults: list[str] = []
        for batch in _batches_with_distinct_hosts(living):
            outcomes = await gather_hosts(batch, close_workdir)
            faults += [
                str(fault)
                for workdir in batch
                if (fault := outcomes.errors.get(workdir.name))
                and _is_close_failure_final(workdir, fault)
            ]
        self._open.clear()
        return tuple(faults)

    async def _open_folders(
        self, targets: list[Target], facts_by_target: Mapping[str, HostFacts]
    ) -> None:
        settings = self._context.study.target
        made: dict[str, HostFacts] = {}

        async def open_work_directory(target: Target) -> None:
            host = self._context.hosts[target.host]
            host_facts = facts_by_target[target.key]
            if settings.make_xfs:
                own = await self._create_file_system(host, target, host_facts)
                for text in own.notices:
                    self._context.emit(Notice(text))
                workdir, made[target.key] = own.workdir, own.facts
            elif target.serial is not None:
                workdir = await take_device(host, target, host_facts.target, settings)
            else:
                name = scratch_folder_name(host.name)
                if target.holds_no_load_data:
                    # It is no target: sessions on one host each have theirs.
                    name = f"{name}-{self._context.session_id}"
                folder = await self._open_folder(host, target.path, name)
                workdir = WorkDirectory(host, folder, host_facts.target, target.key)
            self._open[target.key] = workdir

        wanted = [target for target in targets if target.key not in self._open]
        if settings.make_xfs and wanted:
            hosts = "1 host" if len(wanted) == 1 else f"each of {len(wanted)} hosts"
            self._context.begin_session_phase(SessionPhase.LAY_OUT, None, f"an XFS on {hosts}")
        outcomes = await gather_hosts(wanted, open_work_directory)
        if made:
            self._created_file_systems |= made
            self._context.emit(FilesystemsCreated(tuple(made.items())))
        outcomes.results_or_raise()

    async def _create_file_system(
        self, host: Host, target: Target, host_facts: HostFacts
    ) -> CreatedFileSystem:
        """A folder with a file system of the session's own in it."""
        folder = await self._open_folder(host, *mount_parent_and_name(target))
        try:
            return await make_or_reopen_file_system(
                host, folder, target, self._context.study.target, host_facts
            )
        except HostError:
            if not host.lost_reason:
                # Only so can the folder be taken again.
                with suppress(HostError):
                    limit_s = CLOSE_LIMIT_S + self._removal_s
                    await host.request("scratch_close", deadline_s=limit_s, dir=folder, keep=False)
            raise

    async def _open_folder(self, host: Host, path: str, name: str) -> str:
        return await open_scratch_folder_with_notice(
            self._context, host, path, name, extra_timeout_s=self._removal_s
        )

    def _targets_of_included_hosts(self) -> list[Target]:
        return [
            item for item in self._targets if item.host not in self._context.excluded_host_names
        ]

    async def _lay_out_missing(self, data_set: DataSet, targets: list[Target]) -> None:
        # A device is written over as a whole, when the state for its runs is made.
        all_workdirs = (self._open[target.key] for target in targets)
        workdirs = [
            workdir
            for workdir in all_workdirs
            if not workdir.device and data_set.with_jobs_of_host(workdir.name).numjobs
        ]
        if not workdirs:
            return
        await lay_out_data_set_where_missing(
            self._context, workdirs, data_set, self._needed[data_set.id].job
        )


def _batches_with_distinct_hosts(members: Iterable[Member]) -> list[list[Member]]:
    """The members in batches that name each host once, as the barrier files outcomes by host."""
    batches: list[dict[str, Member]] = []
    for member in members:
        batch = next((batch for batch in batches if member.name not in batch), None)
        if batch is None:
            batches.append({member.name: member})
        else:
            batch[member.name] = member
    return [list(batch.values()) for batch in batches]


def _is_close_failure_final(workdir: WorkDirectory, fault: IolabError) -> bool:
    """Whether no more is heard of a folder that could not be closed: it stays nowhere."""
    if not isinstance(fault, AgentRefusalError):
        return True
    return bool(workdir.device) or fault.code == "replaced"
