# SPDX-License-Identifier: Apache-2.0
"""Counts of HTTP requests and responses, in whichever process serves them.

The middleware is added when http_server is imported, so that tokenizer workers, which
import it again, have it too. It records nothing until `init_http_request_metrics()`.
"""

from __future__ import annotations

from collections import Counter as Tally
from typing import Any, Awaitable, Callable, Optional

_ROUTING_KEY = b"x-smg-routing-key"

_metrics: Optional["_HttpRequestMetrics"] = None


def init_http_request_metrics() -> None:
    """Start recording in this process; a second call does nothing.

    Call it once PROMETHEUS_MULTIPROC_DIR is set: prometheus_client decides when it is
    first imported where values are kept, and would keep a worker's to itself.
    """
    global _metrics
    if _metrics is None:
        _metrics = _HttpRequestMetrics()


def add_http_request_metrics_middleware(app: Any) -> None:
    """Add the middleware to a FastAPI or Starlette app that has not started yet."""
    app.add_middleware(_HttpRequestMetricsMiddleware)


class _HttpRequestMetrics:
    def __init__(self) -> None:
        from prometheus_client import Counter, Gauge

        self.requests = Counter(
            "sglang:http_requests_total",
            "Requests received, by route and method",
            ["endpoint", "method"],
        )
        self.responses = Counter(
            "sglang:http_responses_total",
            "Responses begun, by route, status code and method",
            ["endpoint", "status_code", "method"],
        )
        self.active = Gauge(
            "sglang:http_requests_active",
            "Requests being served, by route and method",
            ["endpoint", "method"],
            multiprocess_mode="livesum",
        )
        self.routing_keys = Gauge(
            "sglang:routing_keys_active",
            "Distinct routing keys among the requests being served",
            multiprocess_mode="livesum",
        )
        self._keys: Tally[bytes] = Tally()

    def enter(self, endpoint: str, method: str, key: Optional[bytes]) -> None:
        """A request has come in."""
        self.requests.labels(endpoint, method).inc()
        self.active.labels(endpoint, method).inc()
        if key:
            self._keys[key] += 1
            self.routing_keys.set(len(self._keys))

    def leave(self, endpoint: str, method: str, key: Optional[bytes]) -> None:
        """A request is over, answered or not."""
        self.active.labels(endpoint, method).dec()
        if key:
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]
            self.routing_keys.set(len(self._keys))


class _HttpRequestMetricsMiddleware:
    """Plain ASGI: passes `receive` on untouched, so is_disconnected() keeps working."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: dict, receive: Any, send: Any) -> None:
        metrics = _metrics
        if metrics is None or scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        endpoint, method = _endpoint(scope), scope["method"]
        key = next((v for k, v in scope["headers"] if k == _ROUTING_KEY), None)

        async def counted(message: dict) -> None:
            if message["type"] == "http.response.start":
                status = str(message["status"])
                metrics.responses.labels(endpoint, status, method).inc()
            await send(message)

        metrics.enter(endpoint, method, key)
        try:
            await self.app(scope, receive, counted)
        finally:
            metrics.leave(endpoint, method, key)


def _endpoint(scope: dict) -> str:
    """The path of the route that takes the request; its own path where none does."""
    from starlette.routing import Match

    for route in scope["app"].routes:
        match, _ = route.matches(scope)
        if match == Match.FULL:
            return getattr(route, "path", scope["path"])
    return scope["path"]
