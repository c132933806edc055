#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What ibv_rc_pingpong's client says over TCP, and then nothing, until standard input ends."""
import socket
import sys

with socket.create_connection((sys.argv[2], int(sys.argv[1]))) as control:
    control.sendall(b"0000:00fff0:000000:00000000000000000000ffff7f000001\0")
    control.recv(128)
    control.sendall(b"done\0")
    print("ready", flush=True)
    sys.stdin.read()
