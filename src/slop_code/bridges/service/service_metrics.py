"""Metrics of the reward service, in the format of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.bridges.service.queue_records import EvaluationOutcome
    from slop_code.bridges.service.service_queue import ServiceQueue

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)


class ServiceMetrics:
    def __init__(self, queue: ServiceQueue) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(_QueueCollector(queue))
        self._answers = Counter(
            "slop_code_answers", "Answers to requests for an evaluation", ["state", "source"], registry=self._registry
        )
        self._refused = Counter(
            "slop_code_refused", "Requests without an evaluation, by HTTP status", ["status"], registry=self._registry
        )
        self._seconds = Histogram(
            "slop_code_answer_seconds", "Seconds from request to answer", buckets=SECONDS, registry=self._registry
        )

    def answered(self, outcome: EvaluationOutcome, seconds: float) -> None:
        self._answers.labels(outcome.state, outcome.source).inc()
        self._seconds.observe(seconds)

    def refused(self, status: int) -> None:
        self._refused.labels(str(status)).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _QueueCollector:
    def __init__(self, queue: ServiceQueue) -> None:
        self._queue = queue

    def collect(self) -> Iterator[GaugeMetricFamily]:
        waiting, running = self._queue.counts()
        yield GaugeMetricFamily("slop_code_waiting", "Evaluations that wait", value=waiting)
        yield GaugeMetricFamily("slop_code_running", "Evaluations that run", value=running)
        yield GaugeMetricFamily("slop_code_workers", "Evaluations that can run at a time", value=self._queue.slots)
