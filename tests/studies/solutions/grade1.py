"""Reference solutions, grade 1: one thought each."""
# ruff: noqa: B905


def count_vowels(text):
    return sum(c in "aeiou" for c in text.lower())


def middle_of_three(a, b, c):
    return sorted([a, b, c])[1]


def sum_of_digits(n):
    return sum(int(d) for d in str(abs(n)))


def second_largest(values):
    distinct = sorted(set(values))
    return distinct[-2] if len(distinct) > 1 else None


def swap_case_words(text):
    return " ".join(w.upper() if i % 2 == 0 else w.lower() for i, w in enumerate(text.split()))


def is_leap_year(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def clamp_all(values, low, high):
    return [min(max(v, low), high) for v in values]


def longest_word(text):
    best = ""
    for word in text.split():
        if len(word) > len(best):
            best = word
    return best


def alternating_sum(values):
    return sum(v if i % 2 == 0 else -v for i, v in enumerate(values))


def count_pairs_with_sum(values, total):
    return sum(values[i] + values[j] == total for i in range(len(values)) for j in range(i + 1, len(values)))


def is_palindrome_phrase(text):
    letters = [c for c in text.lower() if c.isalpha()]
    return letters == letters[::-1]


def minutes_between(start, end):
    def minutes(t):
        h, m = t.split(":")
        return int(h) * 60 + int(m)

    return (minutes(end) - minutes(start)) % 1440


def remove_every_nth(values, n):
    return [v for i, v in enumerate(values, 1) if i % n]


def initials(name):
    return "".join(part[0].upper() for part in name.replace("-", " ").split())


def common_prefix(words):
    if not words:
        return ""
    out = ""
    for letters in zip(*words):
        if len(set(letters)) > 1:
            break
        out += letters[0]
    return out


def running_maximum(values):
    out = []
    for v in values:
        out.append(v if not out or v > out[-1] else out[-1])
    return out


def count_in_range(values, low, high):
    return sum(low <= v < high for v in values)


def repeat_letters(text):
    return "".join(c * i for i, c in enumerate(text, 1))


def triangle_kind(a, b, c):
    a, b, c = sorted([a, b, c])
    if a <= 0 or a + b <= c:
        return "none"
    return {1: "equilateral", 2: "isosceles", 3: "scalene"}[len({a, b, c})]


def digits_to_words(n):
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    return " ".join(names[int(d)] for d in str(n))
