"""Long work in slices: each step does one, and what raises is done again from the beginning."""

from collections.abc import Iterator

import pytest

from rgd.core.jobs import Job


def test_each_step_does_a_slice_until_none_is_left() -> None:
    done: list[int] = []

    def slices() -> Iterator[None]:
        for number in range(3):
            if number:
                yield
            done.append(number)

    job = Job(slices)
    job.step()
    assert (done, job.is_pending) == ([], False)
    job.begin()
    for count in (1, 2, 3):
        assert job.is_pending
        job.step()
        assert done == list(range(count))
    assert not job.is_pending
    job.begin()
    job.step()
    job.begin()
    job.step()
    assert done == [0, 1, 2, 0, 0]


def test_a_job_that_raises_begins_again() -> None:
    done, faults = [], [OSError("once")]

    def slices() -> Iterator[None]:
        done.append("first")
        yield
        if faults:
            raise faults.pop()
        done.append("second")

    job = Job(slices)
    job.begin()
    job.step()
    with pytest.raises(OSError, match="once"):
        job.step()
    while job.is_pending:
        job.step()
    assert done == ["first", "first", "second"]
