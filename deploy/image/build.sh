#!/usr/bin/env bash
# Builds two images of our own binary with the engine: runlens, the product, and runlens-engine, a
# ClickHouse for tests. They contain nothing but the binary, the engine library, what the two link to, and
# the certificate authorities that this machine trusts.
set -euo pipefail
cd "$(dirname "$0")/../.."

library=$(find deploy/engine/node_modules/@chdb -name libchdb.so | head -n 1)
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
root=$context/rootfs
mkdir -p "$root"/{bin,lib,tmp,data}
chmod 1777 "$root/tmp"

# LDFLAGS are those of the Makefile, which say the version.
CGO_ENABLED=0 go build -trimpath -ldflags "${LDFLAGS:-}" -o "$root/bin/runlens" ./cmd/runlens
cp -L "$library" "$root/lib/libchdb.so"
# Each library goes to the very path it was found at: the loader's own is written into the binary.
{ ldd "$root/bin/runlens"; ldd "$library"; } | grep -oE '/[^ ]+\.so[^ ]*' | sort -u | while read -r file; do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
done
# Without authorities no server would be trusted over TLS, such as a ClickHouse in a cloud.
for authorities in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
    if [ -f "$authorities" ]; then
        install -D -m 644 "$authorities" "$root/etc/ssl/certs/ca-certificates.crt"
        break
    fi
done
cp deploy/image/Dockerfile "$context/"
docker build --quiet --target engine --tag runlens-engine "$context"
docker build --quiet --tag runlens "$context"
