#!/bin/sh
# fresh.sh - from a clone to `Score:` where nothing else is: `make labs-fresh`.
#
# In a container, where one runs: podman or docker builds docs/labs/Containerfile. Else in a
# Debian that debootstrap makes (tests/run/fresh.sh), with the packages that this file lists.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"

for program in podman docker; do
    if command -v "$program" >/dev/null && "$program" info >/dev/null 2>&1; then
        clone=$(mktemp -d)
        trap 'rm -rf "$clone"' EXIT
        git clone -q --no-local . "$clone/sonde"
        "$program" build -q -t sonde-labs -f docs/labs/Containerfile "$clone/sonde"
        "$program" run --rm sonde-labs ./sonde grade 3 docs/labs/host/int3/solution
        exec "$program" run --rm sonde-labs ./sonde grade 2 docs/labs/host/handler/solution
    fi
done
echo "labs-fresh: no container runs here"
exec tests/run/fresh.sh labs
