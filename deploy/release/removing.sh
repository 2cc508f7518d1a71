#!/bin/sh
# Before a package is removed; not before an upgrade, which dpkg and rpm tell by their argument. Data stay.
set -e
case "$1" in remove | 0) ;; *) exit 0 ;; esac
if [ -d /run/systemd/system ]; then
    systemctl disable --now runlens-serve.service runlens-worker.service
fi
