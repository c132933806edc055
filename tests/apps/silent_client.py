#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What ibv_rc_pingpong's client says over TCP, and then nothing, until standard input ends.

The QPN is the first one of a host, so the server's own: a QP that is there and never sends.
"""
import socket
import sys

with socket.create_connection((sys.argv[2], int(sys.argv[1]))) as control:
    control.sendall(b"0000:000100:000000:00000000000000000000ffff7f000001\0")
    control.recv(128)
    control.sendall(b"done\0")
    print("ready", flush=True)
    sys.stdin.read()
