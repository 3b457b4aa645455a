"""Reference solutions, grade 2: a loop with a little state."""
# ruff: noqa: B905, RUF007


def run_lengths(text):
    out = []
    for c in text:
        if out and out[-1][0] == c:
            out[-1][1] += 1
        else:
            out.append([c, 1])
    return out


def merge_sorted(a, b):
    out, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    return out + a[i:] + b[j:]


def rotate_left(values, steps):
    if not values:
        return []
    k = steps % len(values)
    return values[k:] + values[:k]


def first_unique_letter(text):
    return next((c for c in text if text.count(c) == 1), "")


def balanced_brackets(text):
    pairs, open_ones = {")": "(", "]": "[", "}": "{"}, []
    for c in text:
        if c in "([{":
            open_ones.append(c)
        elif c in pairs and (not open_ones or open_ones.pop() != pairs[c]):
            return False
    return not open_ones


def collatz_steps(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def prime_factors(n):
    out, p = [], 2
    while p * p <= n:
        while n % p == 0:
            out.append(p)
            n //= p
        p += 1
    return out + ([n] if n > 1 else [])


def group_by_length(words):
    out = {}
    for w in words:
        out.setdefault(str(len(w)), []).append(w)
    return out


def caesar(text, shift):
    def moved(c):
        if not c.isascii() or not c.isalpha():
            return c
        base = ord("a") if c.islower() else ord("A")
        return chr((ord(c) - base + shift) % 26 + base)

    return "".join(moved(c) for c in text)


def longest_increasing_run(values):
    best = here = 0
    last = None
    for v in values:
        here = here + 1 if last is not None and v > last else 1
        best = max(best, here)
        last = v
    return best


def to_base(n, base):
    if n == 0:
        return "0"
    out = ""
    while n:
        out = "0123456789abcdef"[n % base] + out
        n //= base
    return out


def transpose_ragged(rows):
    width = max((len(r) for r in rows), default=0)
    return [[r[i] for r in rows if i < len(r)] for i in range(width)]


def vowel_runs(text):
    best = here = 0
    for c in text.lower():
        here = here + 1 if c in "aeiou" else 0
        best = max(best, here)
    return best


def apply_discounts(prices, discounts):
    total = 0
    for p in prices:
        best = max((d[1] for d in discounts if p >= d[0]), default=0)
        total += p * (100 - best) // 100
    return total


def most_frequent(values):
    best, count = None, 0
    for v in sorted(set(values)):
        if values.count(v) > count:
            best, count = v, values.count(v)
    return best


def chunk_evenly(values, parts):
    size, extra = divmod(len(values), parts)
    out, at = [], 0
    for i in range(parts):
        end = at + size + (i < extra)
        out.append(values[at:end])
        at = end
    return out


def pascal_row(n):
    row = [1]
    for _ in range(n):
        row = [1] + [a + b for a, b in zip(row, row[1:])] + [1]
    return row


def mask_middle(text, keep):
    if len(text) <= 2 * keep:
        return text
    end = text[len(text) - keep :]
    return text[:keep] + "*" * (len(text) - 2 * keep) + end


def dot_path(data, path):
    for key in path.split("."):
        if not isinstance(data, dict) or key not in data:
            return None
        data = data[key]
    return data


def happy_number(n):
    seen = set()
    while n != 1 and n not in seen:
        seen.add(n)
        n = sum(int(d) ** 2 for d in str(n))
    return n == 1
