"""Reference solutions, grade 4: dynamic programming, graphs, small parsers."""
# ruff: noqa: B905


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        new = [i]
        for j, y in enumerate(b, 1):
            new.append(min(new[-1] + 1, row[j] + 1, row[j - 1] + (x != y)))
        row = new
    return row[-1]


def coin_ways(coins, total):
    ways = [1] + [0] * total
    for c in coins:
        for t in range(c, total + 1):
            ways[t] += ways[t - c]
    return ways[total]


def fewest_coins(coins, total):
    best = [0] + [None] * total
    for t in range(1, total + 1):
        options = [best[t - c] for c in coins if c <= t and best[t - c] is not None]
        best[t] = min(options) + 1 if options else None
    return best[total]


def longest_common_subsequence(a, b):
    row = [0] * (len(b) + 1)
    for x in a:
        new = [0]
        for j, y in enumerate(b):
            new.append(row[j] + 1 if x == y else max(new[-1], row[j + 1]))
        row = new
    return row[-1]


def shortest_path_length(edges, start, goal):
    near = {}
    for a, b in edges:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    seen, here, steps = {start}, [start], 0
    while here:
        if goal in here:
            return steps
        here = [y for x in here for y in near.get(x, []) if y not in seen and not seen.add(y)]
        steps += 1
    return -1


def count_islands(grid):
    grid = [list(r) for r in grid]
    count = 0
    for y in range(len(grid)):
        for x in range(len(grid[y])):
            if grid[y][x] == 1:
                count += 1
                todo = [(y, x)]
                while todo:
                    b, a = todo.pop()
                    if 0 <= b < len(grid) and 0 <= a < len(grid[b]) and grid[b][a] == 1:
                        grid[b][a] = 0
                        todo += [(b + 1, a), (b - 1, a), (b, a + 1), (b, a - 1)]
    return count


def topological_order(tasks, before):
    left, order = sorted(tasks), []
    while left:
        ready = [t for t in left if all(a in order for a, b in before if b == t)]
        if not ready:
            return None
        order.append(ready[0])
        left.remove(ready[0])
    return order


def calculate(text):
    text = text.replace(" ", "")

    def product(at):
        value, at = atom(at)
        while at < len(text) and text[at] == "*":
            other, at = atom(at + 1)
            value *= other
        return value, at

    def atom(at):
        if text[at] == "(":
            value, at = total(at + 1)
            return value, at + 1
        end = at
        while end < len(text) and text[end].isdigit():
            end += 1
        return int(text[at:end]), end

    def total(at):
        value, at = product(at)
        while at < len(text) and text[at] in "+-":
            other, after = product(at + 1)
            value = value + other if text[at] == "+" else value - other
            at = after
        return value, at

    return total(0)[0]


def knapsack(weights, values, capacity):
    best = [0] * (capacity + 1)
    for w, v in zip(weights, values):
        for c in range(capacity, w - 1, -1):
            best[c] = max(best[c], best[c - w] + v)
    return best[capacity]


def longest_increasing_subsequence(values):
    best = []
    for i, v in enumerate(values):
        best.append(1 + max((best[j] for j in range(i) if values[j] < v), default=0))
    return max(best, default=0)


def permutations_sorted(values):
    if not values:
        return [[]]
    out = []
    for i, v in enumerate(sorted(values)):
        rest = sorted(values)
        rest.pop(i)
        for p in permutations_sorted(rest):
            if [v, *p] not in out:
                out.append([v, *p])
    return out


def word_break(text, words):
    ok = [True] + [False] * len(text)
    for end in range(1, len(text) + 1):
        ok[end] = any(end >= len(w) and ok[end - len(w)] and text[end - len(w) : end] == w for w in words)
    return ok[-1]


def grid_paths(grid):
    row = [0] * len(grid[0])
    row[0] = 1
    for line in grid:
        for x, wall in enumerate(line):
            if wall:
                row[x] = 0
            elif x:
                row[x] += row[x - 1]
    return row[-1]


def union_groups(n, pairs):
    parent = list(range(n))

    def root(x):
        while parent[x] != x:
            x = parent[x]
        return x

    for a, b in pairs:
        parent[root(a)] = root(b)
    return len({root(x) for x in range(n)})


def minimum_rooms(meetings):
    events = sorted([(b, -1) for a, b in meetings] + [(a, 1) for a, b in meetings])
    best = here = 0
    for _, change in events:
        here += change
        best = max(best, here)
    return best


def longest_palindrome(text):
    best = ""
    for i in range(len(text)):
        for j in range(i + 1, len(text) + 1):
            piece = text[i:j]
            if piece == piece[::-1] and len(piece) > len(best):
                best = piece
    return best


def queens(n):
    def place(row, columns, up, down):
        if row == n:
            return 1
        return sum(
            place(row + 1, columns | {c}, up | {row + c}, down | {row - c})
            for c in range(n)
            if c not in columns and row + c not in up and row - c not in down
        )

    return place(0, frozenset(), frozenset(), frozenset())


def cheapest_route(edges, start, goal):
    cost, left = {start: 0}, {start}
    while left:
        here = min(left, key=lambda x: cost[x])
        left.remove(here)
        for a, b, c in edges:
            if a == here and cost[here] + c < cost.get(b, float("inf")):
                cost[b] = cost[here] + c
                left.add(b)
    return cost.get(goal, -1)


def subset_sums(values, total):
    ways = {0: 1}
    for v in values:
        new = dict(ways)
        for s, n in ways.items():
            new[s + v] = new.get(s + v, 0) + n
        ways = new
    return ways.get(total, 0)


def compress_ranges(values):
    values, out = sorted(set(values)), []
    for v in values:
        if out and v == out[-1][1] + 1:
            out[-1][1] = v
        else:
            out.append([v, v])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in out)
