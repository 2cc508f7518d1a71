#!/bin/sh
# After a package is installed or upgraded. Nothing is started that was not running: there may be no engine yet.
set -e
if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers runlens.conf
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart runlens-serve.service runlens-worker.service ||
        echo "runlens did not start again: journalctl -u runlens-serve -u runlens-worker says why" >&2
fi
