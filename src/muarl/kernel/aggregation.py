"""What share each sampled token has in the loss of an update.

The loss of an update is the sum of its tokens' losses times their shares. Shares are settled for the
whole update before it is cut into micro-batches, so adding the losses (and gradients) of the parts
gives those of the whole, however it was cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Aggregation = Literal["token", "sequence", "constant"]


def token_shares(
    kept: Sequence[Sequence[bool]],
    *,
    aggregation: Aggregation = "token",
    constant: int | None = None,
    num_tokens: int | None = None,
    num_samples: int | None = None,
) -> list[list[float]]:
    """Share of each sampled token.

        token      1 / kept tokens of the update                 (DAPO, arXiv 2503.14476)
        sequence   1 / (samples · kept tokens of the sample)     (GRPO, arXiv 2402.03300)
        constant   1 / (samples · `constant`)                    (Dr. GRPO, arXiv 2503.20783)

    Rejected tokens have share 0 and count in no denominator; a sample that has none left is not
    counted either.

        kept [[yes, yes, no], [yes]]    token     [[1/3, 1/3, 0], [1/3]]
                                        sequence  [[1/4, 1/4, 0], [1/2]]

    Args:
        kept: For each sample, whether each of its sampled tokens counts.
        aggregation: One of the above.
        constant: The divisor of `constant`.
        num_tokens: Kept tokens of the update, where these samples are a part of it.
        num_samples: Samples of the update likewise.
    """
    counts = [sum(row) for row in kept]
    tokens = num_tokens or sum(counts)
    samples = num_samples or sum(count > 0 for count in counts)

    def share(count: int) -> float:
        if aggregation == "token":
            return 1 / tokens
        return 1 / (samples * (count if aggregation == "sequence" else (constant or count)))

    return [
        [share(count) if keep else 0.0 for keep in row]
        for row, count in zip(kept, counts, strict=True)
    ]
