"""Locks of control groups, in ordinary folders."""

import os
import threading

from slop_code.execution.bubblewrap.group_locks import new_group, remove_abandoned_groups

PREFIX = "slop-code-"


def test_a_new_group_stays_while_others_remove_abandoned_ones(tmp_path):
    done = threading.Event()

    def clean():
        while not done.is_set():
            remove_abandoned_groups(tmp_path, PREFIX)

    cleaners = [threading.Thread(target=clean) for _ in range(2)]
    for cleaner in cleaners:
        cleaner.start()
    try:
        for _ in range(300):
            group, lock = new_group(tmp_path, PREFIX)
            assert group.is_dir()
            os.close(lock)
    finally:
        done.set()
        for cleaner in cleaners:
            cleaner.join()


def test_groups_whose_evaluator_has_ended_are_removed_with_those_in_them(tmp_path):
    living, lock = new_group(tmp_path, PREFIX)
    ended, other_lock = new_group(tmp_path, PREFIX)
    (ended / "leaf").mkdir()
    os.close(other_lock)
    remove_abandoned_groups(tmp_path, PREFIX)
    assert [*tmp_path.iterdir()] == [living]
    os.close(lock)
