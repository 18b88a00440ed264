"""Hashes of bytes, as TensorFlow has them."""

from __future__ import annotations

from pullback.numerics.hashes import compute_farm_hash, compute_sip_hash


def test_string_hashes_of_every_length_equal_tensorflow() -> None:
    buckets, combined = 2**62, [0, 0]
    for n in range(200):
        text = "".join(chr(97 + (i * 7 + n) % 26) for i in range(n)).encode()
        found = compute_farm_hash(text) % buckets, compute_sip_hash(text, (1, 2)) % buckets
        combined = [(total * 31 + one) % buckets for total, one in zip(combined, found, strict=True)]
    assert combined == [
        2306478198375728195,
        3891651940547320082,
    ]  # of tf.strings.to_hash_bucket_fast and to_hash_bucket_strong
