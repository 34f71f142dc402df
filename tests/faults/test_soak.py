"""What a soak is made of: its load, what it samples, and its page."""

from pathlib import Path

import pytest

from penstock.bench.harness import Check, Result
from penstock.faults.soak import Fault, Soak
from penstock.faults.soak_document import keep, write_page
from penstock.faults.soak_load import MEAN_PER_S, made_up, traced
from penstock.faults.soak_samples import Held, Sample, checks, growth, sample
from tests.faults.arrived import arrived


def held(memory_mb: float, threads: float = 5.0, heap_mb: float | None = None) -> Held:
    return Held(memory_mb=memory_mb, threads=threads, descriptors=10.0, heap_mb=heap_mb)


def samples(*memory_mb: float) -> list[Sample]:
    return [Sample(10.0 * number, {"worker": held(mb)}) for number, mb in enumerate(memory_mb)]


def test_only_the_last_two_thirds_count() -> None:
    grown = growth(samples(1, 1, 1, 10, 10, 10, 10, 10, 10, 10), "worker", "memory_mb")
    assert grown == (0.0, 10.0)
    assert growth(samples(*range(0, 100, 10)), "worker", "memory_mb") == (50.0, 35.0)
    assert growth(samples(1, 1, 1), "zygote", "memory_mb") is None
    assert growth([], "worker", "memory_mb") is None


@pytest.mark.parametrize(("last_mb", "ok"), [(101.9, True), (102.5, False), (90.0, True)])
def test_what_grows_by_more_than_its_share_fails(last_mb: float, ok: bool) -> None:
    found = {check.name: check for check in checks(samples(*[100.0] * 7, *[last_mb] * 4))}
    assert found["worker: memory_mb grown"].ok is ok
    assert found["worker: threads grown"].ok
    assert not found["zygote: memory_mb grown"].ok, "what was never seen is not flat"
    assert "worker: heap_mb grown" not in found


def test_this_process_is_sampled_as_the_driver() -> None:
    found = sample(1.0, with_heap=False).kinds["driver"]
    assert found.memory_mb > 5
    assert found.threads >= 1
    assert found.descriptors >= 3
    assert found.heap_mb is None


def test_loads_have_the_same_mean_whatever_they_are_made_of(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = [f"{hour * 3600},{100 + hour % 24}" for hour in range(24 * 9)]
    path.write_text("timestamp,value\n" + "\n".join(rows) + "\n")
    for schedule in (traced(path, 600.0), made_up(600.0)):
        assert schedule.items_by(600.0) / 600.0 == pytest.approx(MEAN_PER_S, rel=0.02)


def test_a_page_takes_checks_and_picture_in(tmp_path: Path) -> None:
    about = Soak(3, 10.0, "a made-up load", faults=[Fault(2.0, "worker"), Fault(4.0, "executor")])
    about.samples = samples(*[10.0] * 10)
    figures = {
        "seed": 3,
        "seconds": 600.0,
        "load": "a made-up load",
        "items": 1234,
        "killed": {"worker": 1, "executor": 1},
        "restarts": 1,
        "windows_held": 0.987,
    }
    result = Result("soak", figures, [Check("lost", 0, "==", 0), Check("grown", 9.0, "<=", 2.0)])
    keep(about, result, arrived(10.0, late=(4.0, 5.0)), tmp_path / "out")
    assert (tmp_path / "out" / "soak.png").stat().st_size > 5_000
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    write_page(tmp_path / "out", page)
    text = page.read_text()
    assert "10 min of a made-up load, seed 3: 1,234 items, 1 workers and 1 executors killed" in text
    assert "98.7% of the windows held" in text
    assert "| grown | 9 | <= 2 | **missed** |" in text
    assert (page.parent / "pictures" / "soak.png").exists()
