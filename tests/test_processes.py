"""CPU and memory from /proc."""

import os
import subprocess
import sys

from penstock.processes import cpu_s, identity, is_alive, name_of, pss_mb, steady_cpu_s, system, tree


def test_children_belong_to_the_tree() -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= set(tree(os.getpid()))
        assert os.getpid() not in tree(child.pid)


def test_a_process_is_known_by_its_number_and_its_beginning() -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        who = identity(child.pid)
        assert who is not None
        assert who == identity(child.pid)
        assert who.split()[0] == str(child.pid)
        assert is_alive(who)
        assert (name_of(child.pid) or "").startswith("python")
        assert not is_alive(f"{who}0"), "another process that had the number later"
    assert not is_alive(who)
    assert identity(child.pid) is None
    assert name_of(child.pid) is None


def test_the_system_is_the_same_for_all_who_know_the_same_processes() -> None:
    told = [sys.executable, "-c", "from penstock.processes import system; print(system())"]
    assert subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip() == system()


def test_cpu_grows_with_work() -> None:
    before = cpu_s()
    while cpu_s() < before + 0.05:
        sum(range(100_000))
    assert cpu_s() > before


COMPILING = """
import ctypes, sys, threading, time
def compile_for_a_while():
    ctypes.CDLL(None).prctl(15, b"C2 CompilerThread")
    until = time.thread_time() + 0.2
    while time.thread_time() < until:
        pass
    print("done", flush=True)
    sys.stdin.read()
threading.Thread(target=compile_for_a_while).start()
"""


def test_compilers_do_not_count() -> None:
    command = [sys.executable, "-c", COMPILING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        assert 0 < steady_cpu_s(child.pid) < cpu_s(child.pid) - 0.15


def test_exact_cpu_is_that_of_the_system() -> None:
    before, exact = cpu_s(), steady_cpu_s()
    while cpu_s() < before + 0.3:
        sum(range(100_000))
    assert abs((cpu_s() - before) - (steady_cpu_s() - exact)) < 0.1


def test_memory_of_this_process_and_of_none() -> None:
    size = pss_mb(os.getpid())
    assert size is None or size > 1
    assert pss_mb(2**30) is None
