"""What the ClearML-Serving service ran: its two hooks, in its gateway."""
from typing import Any, Callable, Optional


class Preprocess(object):
    def preprocess(self, body: dict, state: dict, collect_custom_statistics_fn: Optional[Callable] = None) -> Any:
        state["asked"] = body["x0"] + body["x1"]
        return [[body["x0"], body["x1"]]]

    def postprocess(self, data: Any, state: dict, collect_custom_statistics_fn: Optional[Callable] = None) -> dict:
        if collect_custom_statistics_fn:
            collect_custom_statistics_fn({"y": float(data[0][0])})
        return {"y": [int(data[0][0] > 0.5)], "asked": state["asked"]}
