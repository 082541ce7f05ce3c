"""What differs from one deployment to the next."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the provider is, and the secrets that others share with us."""

    webhook_secret: str = field(repr=False)
    """Signs what shops send."""
    tokens: Mapping[str, str] = field(repr=False)
    """The token of each operator, by name."""
    provider_url: str
    provider_timeout: float
    """Seconds to wait for the provider's answer."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read PAYMENTS_WEBHOOK_SECRET, PAYMENTS_TOKENS (``ada:token viv:token``) and the provider's."""
        try:
            pairs = [pair.split(":", 1) for pair in environment["PAYMENTS_TOKENS"].split()]
            return cls(
                webhook_secret=environment["PAYMENTS_WEBHOOK_SECRET"],
                tokens=dict(pairs),
                provider_url=environment["PAYMENTS_PROVIDER_URL"],
                provider_timeout=float(environment.get("PAYMENTS_PROVIDER_TIMEOUT", "5")),
            )
        except KeyError as missing:
            raise SystemExit(f"Set {missing.args[0]}.") from missing
