"""How fast SimSo is on a set of periodic tasks, for `cargo xtask bench`.

SimSo (https://pypi.org/project/simso/) is a simulator of real-time multiprocessor scheduling.

    python bench/simso_speed.py TASKS.csv CPUS MILLISECONDS SCHEDULER...

TASKS.csv has the columns period_ns and run_ns; every task is released at 0 and then once per
period, and each job runs for run_ns. SCHEDULER is a module of simso.schedulers that schedules all
processors from one queue. Nothing costs time: no overheads, no cache model. A job that misses its
deadline goes on, as it does in the simulator that this is compared with.

Prints the versions of SimSo and Python, then a line for each scheduler: its name, dispatches, jobs
that ended, and seconds. A dispatch is a decision that gives a processor a job which it is not
running already, resuming a preempted job included. Seconds are the CPU time of the simulation
alone: neither building the model nor SimSo's analysis of the results, which comes after it.
"""

import contextlib
import csv
import importlib.metadata
import io
import platform
import sys
import time

from simso.configuration import Configuration
from simso.core import Model, Processor

NS_PER_MS = 1_000_000


def configure(tasks, cpus, milliseconds, scheduler):
    """The same machine and tasks as in the benchmark `dispatches`."""
    configuration = Configuration()
    configuration.cycles_per_ms = NS_PER_MS
    configuration.duration = milliseconds * NS_PER_MS
    configuration.etm = "wcet"
    for number, (period, run) in enumerate(tasks):
        configuration.add_task(
            f"T{number}",
            number,
            period=period / NS_PER_MS,
            deadline=period / NS_PER_MS,
            wcet=run / NS_PER_MS,
            abort_on_miss=False,
        )
    for number in range(cpus):
        configuration.add_processor(f"CPU {number}", number)
    configuration.scheduler_info.clas = f"simso.schedulers.{scheduler}"
    return configuration


def count_dispatches():
    """Makes Processor.preempt, by which SimSo gives a processor a job, count the jobs."""
    give = Processor.preempt
    count = [0]

    def counted(processor, job=None):
        if job is not None:
            count[0] += 1
        give(processor, job)

    Processor.preempt = counted
    return count


def simulate(model):
    """Model.run_model without the analysis at its end; returns seconds of CPU time."""
    model.initialize()
    model.scheduler.init()
    model.progress.start()
    for processor in model.processors:
        model.activate(processor, processor.run())
    for task in model.task_list:
        model.activate(task, task.execute())
    started = time.process_time()
    model.simulate(until=model.duration)
    return time.process_time() - started


def main():
    path, cpus, milliseconds, *schedulers = sys.argv[1:]
    with open(path, newline="") as file:
        tasks = [(int(row["period_ns"]), int(row["run_ns"])) for row in csv.DictReader(file)]
    print(importlib.metadata.version("simso"), platform.python_version())
    count = count_dispatches()
    for scheduler in schedulers:
        model = Model(configure(tasks, int(cpus), int(milliseconds), scheduler))
        count[0] = 0
        # Some schedulers print their decisions.
        with contextlib.redirect_stdout(io.StringIO()):
            seconds = simulate(model)
        jobs = sum(not job.is_active() for task in model.task_list for job in task.jobs)
        print(scheduler, count[0], jobs, f"{seconds:.6f}")


main()
