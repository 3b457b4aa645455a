"""Reference solutions, grade 5: care with details, or two ideas together."""
# ruff: noqa: B905, PERF401

import re


def game_of_life(grid, steps):
    for _ in range(steps):
        h, w = len(grid), len(grid[0])
        new = []
        for y in range(h):
            row = []
            for x in range(w):
                n = sum(
                    grid[(y + b) % h][(x + a) % w] for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)
                )
                row.append(1 if n == 3 or (grid[y][x] and n == 2) else 0)
            new.append(row)
        grid = new
    return grid


def match_wildcard(pattern, text):
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(match_wildcard(pattern[1:], text[i:]) for i in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and match_wildcard(pattern[1:], text[1:])


def number_to_words(n):
    small = (
        *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
        *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
    )
    tens = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
    if n < 20:
        return small[n]
    if n < 100:
        return tens[n // 10] + (f"-{small[n % 10]}" if n % 10 else "")
    if n < 1000:
        rest = f" {number_to_words(n % 100)}" if n % 100 else ""
        return f"{small[n // 100]} hundred{rest}"
    rest = f" {number_to_words(n % 1000)}" if n % 1000 else ""
    return f"{number_to_words(n // 1000)} thousand{rest}"


def poker_hand(cards):
    order = "23456789TJQKA"
    ranks = sorted((order.index(c[0]) for c in cards), reverse=True)
    counts = sorted((ranks.count(r) for r in set(ranks)), reverse=True)
    flush = len({c[1] for c in cards}) == 1
    straight = len(set(ranks)) == 5 and (ranks[0] - ranks[4] == 4 or ranks == [12, 3, 2, 1, 0])
    if straight and flush:
        return "straight flush"
    if counts[0] == 4:
        return "four of a kind"
    if counts == [3, 2]:
        return "full house"
    if flush:
        return "flush"
    if straight:
        return "straight"
    if counts[0] == 3:
        return "three of a kind"
    if counts[:2] == [2, 2]:
        return "two pairs"
    return "one pair" if counts[0] == 2 else "high card"


def lru_trace(capacity, operations):
    store, out = {}, []
    for op in operations:
        if op[0] == "get":
            if op[1] in store:
                store[op[1]] = store.pop(op[1])
                out.append(store[op[1]])
            else:
                out.append(None)
        else:
            store.pop(op[1], None)
            store[op[1]] = op[2]
            if len(store) > capacity:
                store.pop(next(iter(store)))
    return out


def next_permutation(values):
    v = list(values)
    i = len(v) - 2
    while i >= 0 and v[i] >= v[i + 1]:
        i -= 1
    if i < 0:
        return sorted(v)
    j = len(v) - 1
    while v[j] <= v[i]:
        j -= 1
    v[i], v[j] = v[j], v[i]
    return v[: i + 1] + v[i + 1 :][::-1]


def simplify_path(path):
    out = []
    for part in path.split("/"):
        if part == ".." and out:
            out.pop()
        elif part not in ("", ".", ".."):
            out.append(part)
    return "/" + "/".join(out)


def expand_brackets(text):
    stack, number = [["", 1]], ""
    for c in text:
        if c.isdigit():
            number += c
        elif c == "[":
            stack.append(["", int(number)])
            number = ""
        elif c == "]":
            inner, times = stack.pop()
            stack[-1][0] += inner * times
        else:
            stack[-1][0] += c
    return stack[0][0]


def compare_versions(a, b):
    def parts(v):
        numbers = [int(p) for p in v.split(".")]
        while numbers and numbers[-1] == 0:
            numbers.pop()
        return numbers

    x, y = parts(a), parts(b)
    return (x > y) - (x < y)


def sudoku_valid(rows):
    groups = [list(r) for r in rows] + [list(c) for c in zip(*rows)]
    for y in (0, 3, 6):
        for x in (0, 3, 6):
            groups.append([rows[y + b][x + a] for a in range(3) for b in range(3)])
    return all(len({n for n in g if n}) == sum(1 for n in g if n) for g in groups)


def fraction_decimal(a, b):
    whole, rest = divmod(a, b)
    digits, seen = "", {}
    while rest and rest not in seen:
        seen[rest] = len(digits)
        digit, rest = divmod(rest * 10, b)
        digits += str(digit)
    if rest:
        at = seen[rest]
        digits = f"{digits[:at]}({digits[at:]})"
    return f"{whole}.{digits}" if digits else str(whole)


def skyline(buildings):
    points = sorted({x for a, b, h in buildings for x in (a, b)})
    out = []
    for x in points:
        height = max((h for a, b, h in buildings if a <= x < b), default=0)
        if not out or out[-1][1] != height:
            out.append([x, height])
    return out


def assign_tables(groups, seats):
    tables = []
    for size in sorted(groups, reverse=True):
        for i, left in enumerate(tables):
            if left >= size:
                tables[i] -= size
                break
        else:
            tables.append(seats - size)
    return len(tables)


def robot_walk(commands):
    x = y = 0
    dx, dy = 0, 1
    for sign, count in re.findall(r"([LRF])(\d*)", commands):
        for _ in range(int(count or "1")):
            if sign == "L":
                dx, dy = -dy, dx
            elif sign == "R":
                dx, dy = dy, -dx
            else:
                x, y = x + dx, y + dy
    return [x, y]


def diff_lines(old, new):
    n, m = len(old), len(new)
    table = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            table[i][j] = (
                table[i + 1][j + 1] + 1 if old[i] == new[j] else max(table[i + 1][j], table[i][j + 1])
            )
    out, i, j = [], 0, 0
    while i < n or j < m:
        if i < n and j < m and old[i] == new[j]:
            out.append(f" {old[i]}")
            i, j = i + 1, j + 1
        elif i < n and (j == m or table[i + 1][j] >= table[i][j + 1]):
            out.append(f"-{old[i]}")
            i += 1
        else:
            out.append(f"+{new[j]}")
            j += 1
    return out


def csv_fields(line):
    out, field, quoted, i = [], "", False, 0
    while i < len(line):
        c = line[i]
        if quoted and c == '"' and line[i + 1 : i + 2] == '"':
            field += '"'
            i += 1
        elif c == '"':
            quoted = not quoted
        elif c == "," and not quoted:
            out.append(field)
            field = ""
        else:
            field += c
        i += 1
    return [*out, field]


def best_trades(prices, trades):
    cash = [0] * (trades + 1)
    held = [None] * (trades + 1)
    for p in prices:
        for t in range(trades, 0, -1):
            if held[t] is not None:
                cash[t] = max(cash[t], held[t] + p)
            buy = cash[t - 1] - p
            held[t] = buy if held[t] is None else max(held[t], buy)
    return max(cash)


def weekday_of(year, month, day):
    table = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4]
    if month < 3:
        year -= 1
    number = (year + year // 4 - year // 100 + year // 400 + table[month - 1] + day) % 7
    return ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"][number]


def polynomial_text(coefficients):
    out = ""
    top = len(coefficients) - 1
    for i, c in enumerate(coefficients):
        power = top - i
        if c == 0:
            continue
        size = "" if abs(c) == 1 and power else str(abs(c))
        name = "" if power == 0 else "x" if power == 1 else f"x^{power}"
        if out:
            out += " - " if c < 0 else " + "
        elif c < 0:
            out += "-"
        out += size + name
    return out or "0"


def trap_visits(jumps):
    at, seen, steps = 0, set(), 0
    while 0 <= at < len(jumps):
        if at in seen:
            return -1
        seen.add(at)
        at += jumps[at]
        steps += 1
    return steps
