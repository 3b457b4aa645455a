"""Reference solutions, grade 3: a known algorithm, or several rules at once."""
# ruff: noqa: B905, PERF401


def roman(n):
    out = ""
    for value, sign in [
        (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
        (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
    ]:  # fmt: skip
        while n >= value:
            out += sign
            n -= value
    return out


def merge_intervals(intervals):
    out = []
    for a, b in sorted(intervals):
        if out and a <= out[-1][1]:
            out[-1][1] = max(out[-1][1], b)
        else:
            out.append([a, b])
    return out


def spiral(rows):
    out, rows = [], [list(r) for r in rows]
    while rows:
        out += rows.pop(0)
        rows = [list(r) for r in zip(*rows)][::-1]
    return out


def flatten_deep(value):
    if not isinstance(value, list):
        return [value]
    return [x for item in value for x in flatten_deep(item)]


def maximum_subarray(values):
    best = here = values[0]
    for v in values[1:]:
        here = max(v, here + v)
        best = max(best, here)
    return best


def evaluate_postfix(tokens):
    stack = []
    for t in tokens:
        if t in "+-*" and len(t) == 1:
            b, a = stack.pop(), stack.pop()
            stack.append(a + b if t == "+" else a - b if t == "-" else a * b)
        else:
            stack.append(int(t))
    return stack[0]


def water_between(heights):
    total = 0
    for i, h in enumerate(heights):
        total += min(max(heights[: i + 1]), max(heights[i:])) - h
    return total


def decode_runs(text):
    out, number = "", ""
    for c in text:
        if c.isdigit():
            number += c
        else:
            out += c * int(number or "1")
            number = ""
    return out


def neighbours_alive(grid):
    h = len(grid)
    out = []
    for y in range(h):
        row = []
        for x in range(len(grid[y])):
            row.append(
                sum(
                    grid[b][a]
                    for b in range(max(0, y - 1), min(h, y + 2))
                    for a in range(max(0, x - 1), min(len(grid[b]), x + 2))
                    if (a, b) != (x, y)
                )
            )
        out.append(row)
    return out


def smallest_missing(values):
    seen, n = set(values), 1
    while n in seen:
        n += 1
    return n


def title_numbers(n):
    out = ""
    while n:
        n, r = divmod(n - 1, 26)
        out = chr(ord("A") + r) + out
    return out


def three_sum_zero(values):
    values, found = sorted(values), []
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            for k in range(j + 1, len(values)):
                t = [values[i], values[j], values[k]]
                if sum(t) == 0 and t not in found:
                    found.append(t)
    return found


def bowling_score(rolls):
    score = at = 0
    for _ in range(10):
        if rolls[at] == 10:
            score += 10 + rolls[at + 1] + rolls[at + 2]
            at += 1
        elif rolls[at] + rolls[at + 1] == 10:
            score += 10 + rolls[at + 2]
            at += 2
        else:
            score += rolls[at] + rolls[at + 1]
            at += 2
    return score


def majority(values):
    for v in set(values):
        if 2 * values.count(v) > len(values):
            return v
    return None


def wrap_text(text, width):
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line] if line else lines


def sieve(n):
    flags = [True] * (n + 1)
    out = []
    for p in range(2, n + 1):
        if flags[p]:
            out.append(p)
            for q in range(p * p, n + 1, p):
                flags[q] = False
    return out


def rank_scores(scores):
    order = sorted(set(scores), reverse=True)
    return [order.index(s) + 1 for s in scores]


def anagram_groups(words):
    groups = {}
    for w in words:
        groups.setdefault("".join(sorted(w)), []).append(w)
    return sorted(sorted(g) for g in groups.values())


def josephus(n, k):
    people, at = list(range(1, n + 1)), 0
    while len(people) > 1:
        at = (at + k - 1) % len(people)
        people.pop(at)
    return people[0]


def parse_query(text):
    out = {}
    for pair in text.lstrip("?").split("&"):
        if pair:
            key, _, value = pair.partition("=")
            out.setdefault(key, []).append(value.replace("+", " "))
    return out
