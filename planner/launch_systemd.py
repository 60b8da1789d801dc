"""A launch as a systemd unit: a user of its own without rights, a read-only system, and a restart that gives up.

Directives: systemd.exec(5), systemd.service(5). Devices stay visible, since the GPU is one; memory may be written and
executed, since engines compile kernels while they run.
"""

from __future__ import annotations

import re

from planner.launch import launch
from planner.launch_place import READY_S, Place, Written, foot, head, key_notes, machine_notes, model_notes
from planner.launch_settings import LaunchSettings
from planner.server_schema import Server

HARDENING = (
    "DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes",
    "ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectKernelLogs=yes", "ProtectControlGroups=yes",
    "ProtectClock=yes", "ProtectHostname=yes", "RestrictSUIDSGID=yes", "RestrictNamespaces=yes", "LockPersonality=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK", "CapabilityBoundingSet=", "UMask=0077",
    "SystemCallArchitectures=native",
)  # fmt: skip
PLAIN = re.compile(r"^[\w@%+=:,./-]+$")


def unit(server: Server, settings: LaunchSettings, place: Place) -> Written:
    """A unit file; the server listens on this machine only, a proxy stands in front of it."""
    config_file = f"{place.settings}/{server.id}.yaml"
    made = launch(server, settings.model_copy(update={"config_file": config_file}))
    name, benchmark = place.called(server), settings.purpose == "benchmark"
    notes = (
        *machine_notes(settings, "systemd"),
        *model_notes(server, made),
        *key_notes(server, made, f"lines NAME=key in {place.settings}/{name}.env, readable by root only"),
        f"{place.programs} must hold {made.argv[0]}; the unit finds no program under /home.",
        *(
            (f"{config_file} is needed and must be readable by everyone: its text is a file of its own.",)
            if made.config
            else ()
        ),
    )
    cache = f"%C/{name}"
    folder = {server.launch.cache_variable: cache} if server.launch.cache_variable else {}
    secrets = [w for n, flag in made.keys.items() if flag for w in (flag, f"${{{n}}}")]
    # Environment= replaces specifiers such as %C, so only text of others is escaped.
    environment = {"HOME": cache, **folder, **{n: _escaped(v) for n, v in made.environment.items()}}
    command = [f"{place.programs}/{made.argv[0]}", *map(_word, made.argv[1:]), *secrets]
    lines = [
        *head(made, notes),
        "[Unit]",
        _escaped(f"Description={server.name} {server.version} for {settings.purpose}"),
        "Wants=network-online.target", "After=network-online.target",
        *(() if benchmark else ("StartLimitIntervalSec=1h", "StartLimitBurst=3")),
        "",
        "[Service]",
        "Type=exec",
        *(f"Environment={_quoted(f'{n}={v}')}" for n, v in environment.items()),
        *((f"EnvironmentFile={place.settings}/{name}.env",) if made.keys else ()),
        f"ExecStart={' '.join(command)}",
        *(("Restart=no",) if benchmark else ("Restart=on-failure", "RestartSec=10")),
        f"TimeoutStartSec={READY_S}", "TimeoutStopSec=60",
        f"CacheDirectory={name}", "LimitMEMLOCK=infinity",
        *HARDENING,
        "",
        "[Install]",
        "WantedBy=multi-user.target",
        *foot(made),
    ]  # fmt: skip
    files = {f"{server.id}.yaml": made.config} if made.config else {}
    return Written(made, f"{name}.service", "\n".join(lines) + "\n", files, notes)


def _escaped(text: str) -> str:
    """Text in which systemd finds no specifier and no end of line."""
    return " ".join(text.split()).replace("%", "%%")


def _quoted(text: str) -> str:
    return text if PLAIN.match(text) else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _word(text: str) -> str:
    """One argument of ExecStart as it is meant, whatever stands in it."""
    return _quoted(_escaped(text).replace("$", "$$"))
