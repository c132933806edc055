# SPDX-License-Identifier: BSD-2-Clause
"""The guest's kernel and its initial file system, out of Debian's packages: the kernel package is
downloaded and unpacked, not installed; programs and libraries are those of this machine. Both are kept
in a folder of the build tree, and made anew when what they are made of has changed."""
import fcntl
import glob
import hashlib
import lzma
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import zlib

from programs import Failure

HERE = pathlib.Path(__file__).parent
KERNEL = os.environ.get("INTEROP_KERNEL", "linux-image-amd64")
MODULES = ["virtio_pci", "virtio_net", "crc32_generic", "rdma_rxe", "rdma_ucm", "ib_umad",
           "sch_netem", "sch_ingress", "cls_u32", "act_mirred", "ifb"]
PROGRAMS = ["dash", "ip", "tc", "rdma", "ibv_devices", "ibv_devinfo", "rping", "ucmatose", "udaddy",
            *(f"ibv_{service}_pingpong" for service in ("rc", "uc", "ud", "srq")),
            *(f"ib_{operation}_{kind}" for kind in ("bw", "lat")
              for operation in ("write", "read", "send", "atomic"))]
# Loaded by name: the driver of the device, and what pthread_exit needs.
LIBRARIES = ["/usr/lib/*/libibverbs/librxe-rdmav*.so", "/lib/*/libgcc_s.so.1"]
NEEDED = ["qemu-system-x86_64", "busybox", "depmod", "apt-get", "dpkg-deb"]


class NoKernel(Exception):
    """The package of the guest's kernel cannot be had here."""


def run(*command, **options):
    done = subprocess.run(command, check=False, text=True, capture_output=True, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def program(name):
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        raise Failure(f"{name} is missing: scripts/install-packages.sh test")
    return path


def kernel_package():
    """What the metapackage depends on, or the package itself."""
    depends = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", "depends", KERNEL))
    return depends[1] if depends else KERNEL


def make(folder, agent):
    """The paths of kernel and file system, made where they are not there yet."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        package = kernel_package()
        kernel = folder / f"{package}-{hashlib.sha256(' '.join(MODULES).encode()).hexdigest()[:8]}"
        files = folder / f"files-{key_of(package, agent)}"
        if not kernel.exists():
            make_whole(kernel, lambda path: make_kernel(path, package))
        if not files.exists():
            for old in folder.glob("files-*"):
                shutil.rmtree(old)
            make_whole(files, lambda path: make_files(path, kernel, agent))
    return kernel / "vmlinux", files / "initrd"


def key_of(package, agent):
    digest = hashlib.sha256(package.encode())
    for path in [__file__, HERE / "guest" / "init", agent, *map(program, PROGRAMS)]:
        digest.update(pathlib.Path(path).read_bytes())
    return digest.hexdigest()[:16]


def make_whole(path, function):
    """`function(folder)` fills the folder; it gets its name when that has succeeded."""
    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        new = pathlib.Path(work) / "new"
        new.mkdir()
        function(new)
        new.rename(path)


def make_kernel(folder, package):
    """`vmlinux`, and its modules in the order in which they have to be loaded."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        try:
            run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package, cwd=work)
        except Failure as failure:
            raise NoKernel(f"needs {package}: {str(failure).splitlines()[-1]}") from failure
        (archive,) = pathlib.Path(work).glob("*.deb")
        run("dpkg-deb", "-x", archive, work)
        (boot,) = pathlib.Path(work, "boot").glob("vmlinuz-*")
        (folder / "vmlinux").write_bytes(unpacked_kernel(boot.read_bytes()))
        version = boot.name.removeprefix("vmlinuz-")
        run(program("depmod"), "-b", work, version)
        (folder / "modules").mkdir()
        order = [copied_module(folder / "modules", path) for path in modules(work, version)]
        (folder / "modules" / "order").write_text("\n".join(order) + "\n", encoding="ascii")


def unpacked_kernel(image):
    """An emulated processor would take seconds to unpack it by itself. Linux's boot protocol, 2.08:
    payload_offset and payload_length, from the end of the set-up sectors."""
    if image[0x202:0x206] != b"HdrS":
        raise Failure("the kernel is no bzImage")
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = ((image[0x1f1] or 4) + 1) * 512 + offset
    payload = image[start:start + length]
    if payload.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(payload)
    raise Failure(f"the kernel is packed in an unknown way: {payload[:4].hex()}")


def modules(root, version):
    """Files, each after those that it needs; what is built in is not among them."""
    paths = {}
    for name in MODULES:
        done = subprocess.run([program("modprobe"), "-d", root, "-S", version, "--show-depends", name],
                              check=False, text=True, capture_output=True)
        paths.update(dict.fromkeys(re.findall(r"^insmod (\S+)", done.stdout, re.M)))
    if not any("rdma_rxe" in path for path in paths):
        raise Failure(f"Linux {version} has no rdma_rxe")
    return list(paths)


def copied_module(folder, path):
    data = pathlib.Path(path).read_bytes()
    name = os.path.basename(path).removesuffix(".xz")
    (folder / name).write_bytes(lzma.decompress(data) if path.endswith(".xz") else data)
    return name


def make_files(folder, kernel, agent):
    root = folder / "root"
    for directory in ("usr/bin", "usr/lib", "proc", "sys", "dev", "tmp", "etc/libibverbs.d"):
        (root / directory).mkdir(parents=True)
    for directory in ("bin", "sbin", "lib", "lib64"):  # as Debian has it
        (root / directory).symlink_to(f"usr/{'bin' if directory.endswith('bin') else directory}")
    (root / "usr/lib64").mkdir()
    (root / "usr/sbin").symlink_to("bin")
    for name in PROGRAMS:
        shutil.copy(program(name), root / "usr/bin" / name)
        copy_libraries(root, program(name))
    for pattern in LIBRARIES:
        for path in glob.glob(pattern):
            copy_file(root, path)
            copy_libraries(root, path)
    copy_busybox(root)
    shutil.copytree(kernel / "modules", root / "usr/lib/modules")
    shutil.copy(agent, root / "usr/lib/agent")
    shutil.copy(HERE / "guest" / "init", root / "init")
    (root / "init").chmod(0o755)
    (root / "etc/libibverbs.d/rxe.driver").write_text("driver rxe\n", encoding="ascii")
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n", encoding="ascii")
    (root / "etc/hosts").write_text("127.0.0.1 localhost interop-guest\n", encoding="ascii")
    pack(root, folder / "initrd")
    shutil.rmtree(root)


def copy_file(root, path):
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy(path, target)


def copy_libraries(root, path):
    for library in libraries(path):
        copy_file(root, library)


def libraries(path):
    return re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", run("ldd", path), re.M)


def copy_busybox(root):
    """Its other names are links, but for those of the programs above. (It is not the shell: that would
    take its own `ip` and `tc` whatever PATH says.)"""
    shutil.copy(program("busybox"), root / "usr/bin/busybox")
    (root / "usr/bin/sh").symlink_to("dash")
    for name in run("busybox", "--list").split():
        if not (root / "usr/bin" / name).exists():
            (root / "usr/bin" / name).symlink_to("busybox")


def pack(root, archive):
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with open(archive, "wb") as output:
        subprocess.run([program("busybox"), "cpio", "-o", "-H", "newc"], cwd=root, check=True,
                       input=names.encode(), stdout=output, stderr=subprocess.DEVNULL)
