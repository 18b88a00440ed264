"""Hashes of bytes that are the same on every computer: FarmHash and SipHash, as TensorFlow has them."""

from __future__ import annotations

MASK = (1 << 64) - 1
K0, K1, K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
SIP_START = 0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573


def _rotate(x: int, bits: int) -> int:
    """Return the 64 bits of a number, rotated to the right."""
    x &= MASK
    return ((x >> bits) | (x << (64 - bits))) & MASK


def _mix(x: int) -> int:
    x &= MASK
    return x ^ (x >> 47)


def _combine(u: int, v: int, factor: int) -> int:
    a = _mix((u ^ v) * factor)
    return _mix((v ^ a) * factor) * factor & MASK


def _read(text: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(text[at : at + size], "little")


def compute_farm_hash(text: bytes) -> int:
    """Return the 64-bit fingerprint of FarmHash: that of ``tf.strings.to_hash_bucket_fast``.

    >>> compute_farm_hash(b"A") % 3, compute_farm_hash(b"a longer text than sixteen bytes") % 1000
    (1, 392)
    """
    n = len(text)
    if n > 64:
        return _hash_long(text)
    factor = (K2 + 2 * n) & MASK
    if n > 16:
        return _hash_medium(text, factor)
    if n >= 8:
        a, b = _read(text, 0) + K2, _read(text, n - 8)
        return _combine((_rotate(b, 37) * factor + a) & MASK, (_rotate(a, 25) + b) * factor & MASK, factor)
    if n >= 4:
        return _combine(n + (_read(text, 0, 4) << 3), _read(text, n - 4, 4), factor)
    if n:
        y, z = text[0] + (text[n >> 1] << 8), n + (text[n - 1] << 2)
        return _mix((y * K2 ^ z * K0) & MASK) * K2 & MASK
    return K2


def _hash_medium(text: bytes, factor: int) -> int:
    """Return the hash of 17 to 64 bytes."""
    n = len(text)
    a, b = _read(text, 0) * (K1 if n <= 32 else K2), _read(text, 8)
    c, d = _read(text, n - 8) * factor, _read(text, n - 16) * K2
    y = (_rotate(a + b, 43) + _rotate(c, 30) + d) & MASK
    z = _combine(y, (a + _rotate(b + K2, 18) + c) & MASK, factor)
    if n <= 32:
        return z
    e, f = _read(text, 16) * factor, _read(text, 24)
    g, h = (y + _read(text, n - 32)) * factor, (z + _read(text, n - 24)) * factor
    return _combine((_rotate(e + f, 43) + _rotate(g, 30) + h) & MASK, (e + _rotate(f + a, 18) + g) & MASK, factor)


def _hash_block(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Return two numbers from 32 bytes and two seeds."""
    w, x, y, z = (_read(text, at + i) for i in (0, 8, 16, 24))
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    return (a + z) & MASK, (b + _rotate(a, 44) + c) & MASK


def _hash_long(text: bytes) -> int:
    """Return the hash of more than 64 bytes: blocks of 64, then the last 64 again."""
    n = len(text)
    y = 81 * K1 + 113
    z = _mix(y * K2 + 113) * K2 & MASK
    x, y = (81 * K2 + _read(text, 0)) & MASK, y & MASK
    v, w = (0, 0), (0, 0)
    ends = (n - 1) // 64 * 64
    for at in [*range(0, ends, 64), n - 64]:
        factor, weight = K1, 1
        if at == n - 64:
            factor, weight = K1 + ((z & 0xFF) << 1), 9
            first = w[0] + ((n - 1) & 63)
            v = (v[0] + first, v[1])
            w = (first + v[0], w[1])
        x = _rotate(x + y + v[0] + _read(text, at + 8), 37) * factor & MASK
        y = _rotate(y + v[1] + _read(text, at + 48), 42) * factor & MASK
        x = (x ^ (w[1] * weight)) & MASK
        y = (y + v[0] * weight + _read(text, at + 40)) & MASK
        z = _rotate(z + w[0], 33) * factor & MASK
        v = _hash_block(text, at, v[1] * factor, x + w[0])
        w = _hash_block(text, at + 32, z + w[1], y + _read(text, at + 16))
        z, x = x, z
    return _combine(
        (_combine(v[0], w[0], factor) + _mix(y) * K0 + z) & MASK, (_combine(v[1], w[1], factor) + x) & MASK, factor
    )


def compute_sip_hash(text: bytes, key: tuple[int, int]) -> int:
    """Return SipHash-2-4 with this key: that of ``tf.strings.to_hash_bucket_strong``.

    >>> compute_sip_hash(b"A", (133, 137)) % 3
    1
    """
    v = [one ^ key[i % 2] for i, one in enumerate(SIP_START)]

    def scramble(rounds: int) -> None:
        a, b, c, d = v
        for _ in range(rounds):
            a, c = (a + b) & MASK, (c + d) & MASK
            b, d = _rotate(b, 51) ^ a, _rotate(d, 48) ^ c
            a = _rotate(a, 32)
            c, a = (c + b) & MASK, (a + d) & MASK
            b, d = _rotate(b, 47) ^ c, _rotate(d, 43) ^ a
            c = _rotate(c, 32)
        v[:] = a, b, c, d

    padded = text + bytes(7 - len(text) % 8) + bytes([len(text) & 0xFF])
    for at in range(0, len(padded), 8):
        word = _read(padded, at)
        v[3] ^= word
        scramble(2)
        v[0] ^= word
    v[2] ^= 0xFF
    scramble(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]
