#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Open MPI and MPICH over UCX, with nothing but uroce between the ranks: a program that compares what
it gets, on four of them, and NetPIPE on two."""
import os
import pathlib
import subprocess

import checks
from programs import Failure, Program

SOURCE = pathlib.Path(__file__).with_name("mpi_check.c")
# MPICH declares MPI_STATUSES_IGNORE as too short an array.
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-stringop-overflow"]
# rc_v is RC over verbs and UD for the first messages; self is a rank's way to itself.
UCX = {"UCX_TLS": "rc_v,self", "UCX_NET_DEVICES": "uroce0:1", "UCX_LOG_LEVEL": "error"}
# Debian's settings turn UCX off, so it is named; and the tests may be root's.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_pml": "ucx", "OMPI_MCA_osc": "ucx", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1"}


def compiled(compiler):
    checks.needs(compiler)
    tool = pathlib.Path(os.environ["XDG_RUNTIME_DIR"], "mpi_check." + compiler)
    subprocess.run([compiler, *WARNINGS, "-O2", str(SOURCE), "-o", str(tool)], check=True)
    return str(tool)


def run(place, ranks, launcher, program, expected):
    variables = [f"{name}={value}" for name, value in {**UCX, **OPEN_MPI}.items()]
    checks.needs(launcher, program[0])
    command = ["env", *variables, launcher, "-n", str(ranks), *program]
    with Program(place.server_command(command), cwd=os.environ["XDG_RUNTIME_DIR"]) as running:
        status = running.wait()
        if status != 0 or expected not in running.text():
            raise Failure(f"{running} ended with {status}:\n{running.text()}")


def check_open_mpi(place, _):
    run(place, 4, "mpirun.openmpi", [compiled("mpicc.openmpi")], "mpi_check: 4 ranks")


def check_mpich(place, _):
    run(place, 4, "mpiexec.mpich", [compiled("mpicc.mpich")], "mpi_check: 4 ranks")


def check_netpipe(place, _):
    options = ["-u", "4096", "-n", "10", "-p", "0"]
    for launcher, program in (("mpirun.openmpi", "NPopenmpi"), ("mpiexec.mpich", "NPmpich2")):
        run(place, 2, launcher, [program, *options], "4096 bytes     10 times")


if __name__ == "__main__":
    checks.main(__doc__, [check_open_mpi, check_mpich, check_netpipe])
