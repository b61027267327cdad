"""A daemon as the client's core sees it: bodies in, statuses and bodies out, and what it counts as granted.

It decides nothing: the test says what each call is answered. It keeps the account by which the law "never
more than granted" is judged, and refuses what a real daemon would (an unknown lease, amounts never granted).
"""

import msgspec

from rgd.client.core import Call


class ModelDaemon:
    """Answers calls of one client."""

    def __init__(self) -> None:
        #: Per lease: what was granted and not given back, messages and bytes.
        self.leases: dict[str, list[int]] = {}
        #: Per lease: until when its tokens may be spent, ns.
        self.expiry: dict[str, int] = {}
        self.leased = [0, 0]
        self.returned = [0, 0]
        self.acquired = [0, 0]
        self.settled = [0, 0]
        self._last = 0

    def acquire(self, call: Call, *, granted: bool = True) -> tuple[int, bytes]:
        """Answer `POST /v1/acquire`: every question alike."""
        items = msgspec.json.decode(call.body)
        answers = []
        for item in items:
            messages, size = item["messages"], item.get("bytes", 0)
            if granted:
                self.acquired[0] += messages
                self.acquired[1] += size
                answers.append({"granted": True, "messages": messages, "bytes": size})
            else:
                refusal = {"limited_by": "resource_group", "retry_after_ms": 50}
                answers.append({"granted": False, "messages": 0, "bytes": 0, **refusal})
        return 200, msgspec.json.encode(answers)

    def settle(self, call: Call) -> tuple[int, bytes]:
        """Take back."""
        items = msgspec.json.decode(call.body)
        for item in items:
            self.settled[0] += item.get("messages", 0)
            self.settled[1] += item.get("bytes", 0)
        return 200, msgspec.json.encode([{"messages": 0, "bytes": 0} for _ in items])

    def lease(
        self,
        call: Call,
        messages: int,
        size: int,
        ttl_ms: int,
        now: int,
        *,
        cut: bool = False,
        limited: bool = False,
    ) -> tuple[int, bytes]:
        """Answer any call about a lease; new and renewed ones are granted these amounts."""
        body = msgspec.json.decode(call.body)
        parts = call.path.split("/")
        assert min(body.get("wants_messages_per_s", 0), body.get("wants_bytes_per_s", 0)) >= 0
        if len(parts) == 3:
            self._last += 1
            lease_id = f"lease-{self._last}"
            self.leases[lease_id] = [0, 0]
        else:
            lease_id = parts[3]
            left = body["messages"], body["bytes"]
            if lease_id not in self.leases or now >= self.expiry[lease_id]:
                return 404, b'{"reason":"no such lease"}'
            assert all(some <= all_ for some, all_ in zip(left, self.leases[lease_id], strict=True))
            if parts[4] == "release":
                self.returned[0] += left[0]
                self.returned[1] += left[1]
                del self.leases[lease_id]
                return 200, msgspec.json.encode({"messages": left[0], "bytes": left[1]})
        for at, amount in enumerate((messages, size)):
            self.leases[lease_id][at] += amount
            self.leased[at] += amount
        self.expiry[lease_id] = now + ttl_ms * 1_000_000
        answer = {
            "lease_id": lease_id,
            "messages": messages,
            "bytes": size,
            "expires_in_ms": ttl_ms,
            "refresh_in_ms": ttl_ms // 2,
            "safe_rate": {"messages": 1.0, "bytes": 0.0},
        }
        if limited:
            answer |= {"limited_by": "resource_group"}
        if cut:
            answer |= {"limited_by": "resource_group", "group": "gold", "retry_after_ms": 40}
        return 200, msgspec.json.encode(answer)
