# What Windows lacks, or names in another way. Modules of Python that look at os.name when they are imported come first.
import ctypes, os, shutil, signal, socket, subprocess, tempfile, threading

os.name = "nt"
del os.killpg, signal.SIGCONT
