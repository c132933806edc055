#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""run_in_guest.py PORT COMMAND [FILE]: runs a shell command through the guest's agent (guest/agent.c
has the protocol), whose port is forwarded to 127.0.0.1. Shows its output, ends with its status. FILE
is what it finds on its standard input; it has to know itself where that ends."""
import os
import socket
import sys

NO_ANSWER = 125


def main():
    port, command = int(sys.argv[1]), sys.argv[2].encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"%d\n%s" % (len(command), command))
        for name in sys.argv[3:]:
            with open(name, "rb") as file:
                connection.sendfile(file)
        return show_output(connection)


def show_output(connection):
    """Returns the status that comes after the zero byte."""
    status = None
    while data := connection.recv(65536):
        if status is None:
            output, zero, data = data.partition(b"\0")
            os.write(sys.stdout.fileno(), output)
        if zero:
            status = (status or b"") + data
    return int(status) if status else NO_ANSWER


if __name__ == "__main__":
    sys.exit(main())
